package claims

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

var (
	// ErrDoomed is returned by Hold for a token that is to be removed.
	ErrDoomed = errors.New("the key is being removed")
	// ErrHeld is returned by Doom and Hold for a token of another candidate of the session.
	ErrHeld = fmt.Errorf("%w: another candidate of the session has this key", eldest.ErrCampaigning)
)

// Name is a key as one client sees it. Client must be comparable; nil is a client like
// any other.
type Name struct {
	Client any
	Key    string
}

// Claims belong to one session. All methods, and those of Claim, are safe for concurrent
// use.
type Claims struct {
	session context.Context
	past    *unconfirmed

	mu sync.Mutex
	// named is the claim on each name: held, or cleaned up after.
	named map[Name]*Claim
	// owed are the names under which a registration of unknown outcome may yet arrive.
	owed map[Name]bool
	// holders are the claims of the candidates, by the tokens of their keys.
	// Invariant: no token in it is doomed.
	holders map[eldest.Token]*Claim
}

// New makes the claims of a session, whose context ends with it.
func New(session context.Context, lease int64) *Claims {
	past.Lock()
	defer past.Unlock()
	return &Claims{
		session: session, past: pastOf(lease),
		named: make(map[Name]*Claim), owed: make(map[Name]bool), holders: make(map[eldest.Token]*Claim),
	}
}

// Claim is the right of one candidate to a name, or the clean-up after it.
type Claim struct {
	of   *Claims
	name Name
	// stop ends the clean-up, and done is closed when it has ended; nil while the claim
	// is held.
	stop context.CancelFunc
	done chan struct{}
	// clear says that nothing is left that is known of.
	clear bool
}

// Claim takes a name for one candidate, until Release or Clean. A clean-up under the name
// is stopped and waited for; what it knew is still known: its tokens are doomed, and Owed
// says whether a registration may yet arrive. Errors: eldest.ErrCampaigning while the
// name is held; the session's cause once it has ended.
func (cs *Claims) Claim(name Name) (*Claim, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for {
		if cs.session.Err() != nil {
			return nil, context.Cause(cs.session)
		}
		last := cs.named[name]
		switch {
		case last == nil:
			c := &Claim{of: cs, name: name}
			cs.named[name] = c
			return c, nil
		case last.stop == nil:
			return nil, fmt.Errorf("%w: the session already has a candidate there", eldest.ErrCampaigning)
		}
		last.stop()
		cs.mu.Unlock()
		<-last.done
		cs.mu.Lock()
	}
}

// Cleaning returns the claim under whose name something is still to be removed, or nil.
func (cs *Claims) Cleaning(name Name) *Claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.named[name]; c != nil && c.stop != nil && !c.clear && cs.session.Err() == nil {
		return c
	}
	return nil
}

// Wait blocks until every clean-up has ended, as all do with the session, or ctx ends;
// then it returns the context's cause.
func (cs *Claims) Wait(ctx context.Context) error {
	cs.mu.Lock()
	var cleaning []chan struct{}
	for _, c := range cs.named {
		if c.done != nil {
			cleaning = append(cleaning, c.done)
		}
	}
	cs.mu.Unlock()
	for _, done := range cleaning {
		if err := retry.Wait(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// Owed reports whether a registration of unknown outcome was ever sent under the name: it
// may arrive for as long as the session lives.
func (c *Claim) Owed() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.owed[c.name]
}

// Release gives the claim up; nothing of it is left at etcd.
func (c *Claim) Release() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.forget()
}

// forget drops the claim. The caller holds mu.
func (c *Claim) forget() {
	if c.of.named[c.name] == c {
		delete(c.of.named, c.name)
	}
}

// Clean gives the claim up and runs f in the background; its context ends with the
// session, which takes its keys along, and when the name is claimed again. f must return
// then. owed says that a registration of unknown outcome was sent. Clean returns false,
// and does not call f, if the session has ended.
func (c *Claim) Clean(owed bool, f func(ctx context.Context)) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.session.Err() != nil {
		c.forget()
		return false
	}
	if owed {
		c.of.owed[c.name] = true
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(c.of.session)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		defer c.Release()
		defer c.stop()
		f(ctx)
	}()
	return true
}

// Clear notes that nothing is left that is known of: what Clean goes on with is looking
// out for what is owed.
func (c *Claim) Clear() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.clear = true
}

// Hold makes the claim the holder of the token with which its key was found. Errors:
// ErrDoomed, ErrHeld.
func (c *Claim) Hold(token eldest.Token) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch holder := c.of.holders[token]; {
	case holder != nil && holder != c:
		return ErrHeld
	case c.of.past.dooms(token):
		return ErrDoomed
	}
	c.of.holders[token] = c
	return nil
}

// Doom notes that the life of the key with this token is to be removed. It comes before
// each request that deletes it. Errors, after which nothing may be sent: ErrHeld; the
// session's cause once it has ended, for then its keys are no longer ours to remove:
// Abandon leaves them to lease.Resume.
func (c *Claim) Doom(token eldest.Token) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.session.Err() != nil {
		return context.Cause(c.of.session)
	}
	if holder := c.of.holders[token]; holder != nil && holder != c {
		return ErrHeld
	}
	delete(c.of.holders, token)
	c.of.past.doom(token)
	return nil
}

// Free reports whether the token is not that of another candidate of the session.
func (c *Claim) Free(token eldest.Token) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	holder := c.of.holders[token]
	return holder == nil || holder == c
}

// Gone notes that etcd has confirmed that the life with this token is over. No later one
// has the same token, so nothing more needs to be known of it.
func (c *Claim) Gone(token eldest.Token) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.holders, token)
	c.of.past.spare(token)
}

// Comparable returns a client as Name takes it. One whose type cannot be compared is like
// all others of that kind: nil.
func Comparable(client any) any {
	if !reflect.ValueOf(client).Comparable() {
		return nil
	}
	return client
}
