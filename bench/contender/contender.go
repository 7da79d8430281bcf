package contender

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// The names of the contenders.
const (
	Eldest      = "eldest"
	Concurrency = "concurrency"
	Herd        = "herd"
	Floor       = "floor"
	DropIn      = "drop-in"
	// The variants of Eldest: with a keeper, and with heartbeats of these timeouts.
	Kept           = "eldest-keeper"
	Heartbeat1s    = "eldest-heartbeat-1s"
	Heartbeat500ms = "eldest-heartbeat-500ms"
)

// all are the contenders, in the order in which they are shown and take turns.
var all = []Contender{Ours{}, concurrency, herd, floor, dropIn}

// variants differ from one of those in few scenarios only, and take part only in these.
var variants = []Contender{
	variant{name: Kept, kept: true},
	variant{name: Heartbeat1s, heartbeat: time.Second},
	variant{name: Heartbeat500ms, heartbeat: 500 * time.Millisecond},
}

// Contender is one way to elect a leader. The methods of contenders, sessions, candidates and
// tenures may be called from many goroutines. What a contender does not support returns an error
// that wraps errors.ErrUnsupported.
type Contender interface {
	// Name is its name in tables, files and flags.
	Name() string
	// Open starts a session: a lease of the given TTL, kept alive until Close. It blocks until etcd
	// has granted the lease or ctx ends; ctx bounds nothing else.
	Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error)
	// Sight observes an election for any number of observers in this process, which share as much
	// as the contender allows. ctx bounds the start only.
	Sight(ctx context.Context, client *clientv3.Client, election string) (Sight, error)
}

// Session is a lease that is kept alive, and everything that is bound to it.
type Session interface {
	// Lease is the lease of the candidates' keys.
	Lease() clientv3.LeaseID
	// Usable reports whether it makes sense to campaign on the session: false once its loss is
	// known. It sends nothing.
	Usable() bool
	// Candidate makes a candidate, which is not registered yet. It sends nothing.
	Candidate(election, value string) (Candidate, error)
	// Close removes everything that is bound to the session from etcd, and blocks until
	// that is confirmed or ctx ends. The session has ended either way.
	Close(ctx context.Context) error
	// Abandon stops everything and sends nothing, as if the process had crashed.
	Abandon()
}

// Candidate campaigns in one election. A candidate whose campaign can also be ended by a call has a
// method Withdraw(context.Context) error; one whose tenures can be suspended (eldest.ErrSuspended)
// has Resume(context.Context) (Tenure, error), which continues the leadership with the same token; see Tenures.
type Candidate interface {
	// Campaign registers and blocks until the candidate leads, or ctx or the session ends. It may
	// be called again after it has failed, or after the tenure has ended.
	Campaign(ctx context.Context) (Tenure, error)
}

// Tenures yields the tenure of a candidate that has won, and, as often as that is suspended, the one by which the
// candidate leads on with the same token. The caller waits for the end of each before it takes the next.
func Tenures(ctx context.Context, c Candidate, won Tenure) iter.Seq[Tenure] {
	return func(yield func(Tenure) bool) {
		again, ok := c.(interface {
			Resume(ctx context.Context) (Tenure, error)
		})
		for err := error(nil); err == nil && yield(won); won, err = again.Resume(ctx) {
			if !ok || ctx.Err() != nil || !errors.Is(context.Cause(won.Context()), eldest.ErrSuspended) {
				return
			}
		}
	}
}

// Tenure is the leadership of a winner.
type Tenure interface {
	// Key is the leader's key, and Token its create revision.
	Key() string
	Token() int64
	// Holds reports whether the user of the contender may act as leader at this instant.
	Holds() bool
	// Context ends when the user is notified that the tenure is over; its cause is the reason. If
	// it has no Done channel, the contender never notifies.
	Context() context.Context
	// Do commits an operation under the protection that the contender offers its leaders, in one
	// transaction. An error that wraps ErrRefused means that the operation was not done and never
	// will be; after any other error it may have been done.
	Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error)
	// Resign ends the tenure and blocks until that is confirmed. After an error it may be
	// called again.
	Resign(ctx context.Context) error
}

// Sight is how the observers of one process observe an election.
type Sight interface {
	// Feed adds an observer. It blocks until the observer is set up.
	Feed(ctx context.Context) (Feed, error)
	// Close ends all observers and waits for them; ctx bounds the requests to etcd.
	Close(ctx context.Context)
}

// Feed is one observer. It is read by one goroutine at a time.
type Feed interface {
	// Next blocks until the leader changes, and returns the leader.
	Next(ctx context.Context) (Leader, error)
}

// Leader is the leader's key and the value of its candidate, "" if there is no leader.
type Leader struct{ Key, Value string }

// ErrRefused is returned by Tenure.Do for an operation that was not done.
var ErrRefused = errors.New("refused")

// Names returns the names of all contenders except the variants, Eldest first.
func Names() []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name())
	}
	return names
}

// Named returns the contender of that name.
func Named(name string) (Contender, error) {
	var names []string
	for _, c := range slices.Concat(all, variants) {
		if c.Name() == name {
			return c, nil
		}
		names = append(names, c.Name())
	}
	return nil, fmt.Errorf("no contender %q; there are %s", name, strings.Join(names, ", "))
}

// Guarded commits an operation while the leader's key exists with the create revision that is the
// token: this is the guard that users write by hand if their package has none.
func Guarded(ctx context.Context, kv clientv3.KV, key string, token int64, op clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", token)).Then(op).Commit()
	switch {
	case err != nil:
		return nil, err
	case !resp.Succeeded:
		return nil, fmt.Errorf("%w: the leader's key was deleted", ErrRefused)
	}
	return resp, nil
}
