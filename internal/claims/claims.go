package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	session context.Context //nolint:containedctx // the end of the session, not of a call
	lease   *Lease

	mu sync.Mutex
	// named is the claim on each name: held, or cleaned up after.
	named map[Name]*Claim
}

// New makes the claims of a session, whose context ends with it; End must be called then.
func New(session context.Context, lease int64) *Claims {
	return &Claims{session: session, lease: Of(lease), named: make(map[Name]*Claim)}
}

// End notes the end of the session. It is called once, when the context has ended. The keys
// of its candidates are free for the next session of the lease.
func (cs *Claims) End() {
	cs.lease.mu.Lock()
	maps.DeleteFunc(cs.lease.holders, func(_ eldest.Token, c *Claim) bool { return c.of == cs })
	cs.lease.mu.Unlock()
	cs.lease.Done()
}

// Claim is the right of one candidate to a name, or the clean-up after it.
type Claim struct {
	of   *Claims
	name Name
	// stop ends the clean-up, and done is closed when it has ended; nil while the claim
	// is held. clear says that nothing is left that is known of. The mutex of Claims guards
	// these.
	stop  context.CancelFunc
	done  chan struct{}
	clear bool
	// entering says that the key is not known yet; doomed are the tokens that were doomed
	// under this name and are not confirmed to be gone. The mutex of Lease guards these.
	entering bool
	doomed   []eldest.Token
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
		case last != nil && last.stop == nil:
			return nil, fmt.Errorf("%w: the session already has a candidate there", eldest.ErrCampaigning)
		case last != nil && !last.ended():
			last.stop()
			cs.mu.Unlock()
			<-last.done
			cs.mu.Lock()
			continue
		}
		c := &Claim{of: cs, name: name, entering: true}
		cs.named[name] = c
		cs.lease.mu.Lock()
		defer cs.lease.mu.Unlock()
		cs.lease.entering++
		if last != nil {
			c.doomed = slices.Clone(last.doomed)
		}
		return c, nil
	}
}

// ended reports whether the clean-up has ended. The caller holds the mutex of Claims.
func (c *Claim) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Cleaning returns the claim under whose name something is still to be removed, or nil.
func (cs *Claims) Cleaning(name Name) *Claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.named[name]; c != nil && c.stop != nil && !c.ended() && !c.clear && cs.session.Err() == nil {
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

// Owed reports whether a registration of unknown outcome was ever sent under this key, by a
// session of this lease: it may arrive for as long as the lease lives.
func (c *Claim) Owed() bool {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[c.name.Key]
}

// Release gives the claim up; nothing of it is left at etcd.
func (c *Claim) Release() {
	c.known()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.named[c.name] == c {
		delete(c.of.named, c.name)
	}
}

// known notes that the claim waits for no answer about its key any more.
func (c *Claim) known() {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.entering {
		c.entering = false
		l.entered()
	}
}

// Clean gives the claim up and runs f in the background; its context ends with the
// session, which takes its keys along, and when the name is claimed again. f must return
// then. owed says that a registration of unknown outcome was sent. Clean returns false,
// and does not call f, if the session has ended.
func (c *Claim) Clean(owed bool, f func(ctx context.Context)) bool {
	c.known()
	if owed {
		c.of.lease.mu.Lock()
		c.of.lease.owed[c.name.Key] = true
		c.of.lease.mu.Unlock()
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.session.Err() != nil {
		return false
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(c.of.session)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		defer c.settled()
		defer c.stop()
		f(ctx)
	}()
	return true
}

// settled forgets a clean-up that has left nothing for the next claim to know.
func (c *Claim) settled() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(c.doomed) == 0 && c.of.named[c.name] == c {
		delete(c.of.named, c.name)
	}
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
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.held(token, c):
		return ErrHeld
	case l.doomed[token]:
		return ErrDoomed
	}
	l.holders[token] = c
	// The key has one life at a time: earlier ones are over, whoever was told.
	for _, earlier := range c.doomed {
		l.over(earlier)
	}
	c.doomed = nil
	if c.entering {
		c.entering = false
		l.entered()
	}
	return nil
}

// Doom notes that the life of the key with this token is to be removed. It comes before
// each request that deletes it. Errors, after which nothing may be sent: ErrHeld; the
// session's cause once it has ended, for then its keys are no longer ours to remove:
// Abandon leaves them to lease.Resume.
func (c *Claim) Doom(token eldest.Token) error {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.of.session.Err() != nil {
		return context.Cause(c.of.session)
	}
	if l.held(token, c) {
		return ErrHeld
	}
	delete(l.holders, token)
	c.doom(token)
	return nil
}

// Spend notes that the tenure with this token is over although its key stays for a while.
// The claim holds it still.
func (c *Claim) Spend(token eldest.Token) {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.of.session.Err() == nil {
		c.doom(token)
	}
}

// doom adds to what is doomed. The caller holds the mutex of Lease.
func (c *Claim) doom(token eldest.Token) {
	c.of.lease.doomed[token] = true
	if !slices.Contains(c.doomed, token) {
		c.doomed = append(c.doomed, token)
	}
}

// Free reports whether the token is not that of another candidate of the lease.
func (c *Claim) Free(token eldest.Token) bool {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.held(token, c)
}

// Gone notes that etcd has confirmed that the life with this token is over.
func (c *Claim) Gone(token eldest.Token) {
	l := c.of.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	c.doomed = slices.DeleteFunc(c.doomed, func(doomed eldest.Token) bool { return doomed == token })
	l.over(token)
}

// Comparable returns a client as Name takes it. One whose type cannot be compared is like
// all others of that kind: nil.
func Comparable(client any) any {
	if !reflect.ValueOf(client).Comparable() {
		return nil
	}
	return client
}
