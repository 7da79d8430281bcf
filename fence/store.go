package fence

import (
	"context"
	"fmt"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// Store remembers the newest token of each election. Its methods must be safe for concurrent use,
// by all processes that share its data.
type Store interface {
	// Advance makes token the newest of the election unless a newer one has been seen, and returns
	// the newest, in one atomic step: of any two calls for an election one is first, and the second
	// returns no less than the first. It returns only when the token is kept as safely as the data
	// that is fenced. It may block until ctx ends. After an error nothing is admitted; the token
	// may have been remembered or not.
	//
	// Invariant: newest >= token, and newest never decreases.
	Advance(ctx context.Context, election string, token eldest.Token) (newest eldest.Token, err error)
}

// Memory is a Store in the memory of this process. The zero value is ready; it must not be
// copied after its first use. Safe for concurrent use.
//
// Not guaranteed: that a token is kept after a restart, or shared between two processes. After a
// restart Memory has seen nothing, and admits an old leader's token until a newer one comes. It is
// enough if the fenced data is lost with the process as well, such as a cache; otherwise the newest
// token belongs beside the data. A process that can read etcd may make the gap shorter: before it
// serves, it calls Advance with the token that package observe reports.
type Memory struct {
	mu     sync.Mutex
	newest map[string]eldest.Token
}

// Advance implements Store. It never blocks. The error wraps eldest.ErrInvalid if the name is
// invalid or the token is not positive.
func (m *Memory) Advance(_ context.Context, election string, token eldest.Token) (eldest.Token, error) {
	if err := check(election, token); err != nil {
		return 0, &eldest.OpError{Op: "advance", Election: election, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.newest == nil {
		m.newest = make(map[string]eldest.Token)
	}
	if token > m.newest[election] {
		m.newest[election] = token
	}
	return m.newest[election], nil
}

// check returns an error if the name or the token is invalid.
func check(election string, token eldest.Token) error {
	if err := keys.Check(election); err != nil {
		return err
	}
	if token <= 0 {
		return fmt.Errorf("%w: the token %d is not positive", eldest.ErrInvalid, token)
	}
	return nil
}
