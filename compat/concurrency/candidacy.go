package concurrency

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// candidacy is the candidate of a session with one key. All elections and mutexes of the session
// with that key share it: a second campaign on a session is a proclaim, and a session can lock
// again what it has locked. So it counts its users. The key is deleted when the last user gives up,
// and when any user resigns or unlocks. The state machine of package core decides what happens to
// the key.
type candidacy struct {
	group *group
	name  loop.Name
	user  loop.User
	kv    *recorder

	// The mutex of the group guards what follows.
	machine *loop.Candidate
	users   int // calls that use it
	// calls counts the campaigns and locks in progress. held counts the elections and mutexes that
	// lead with the key's present create revision, led the elections among them: the session ends
	// when the key of one is deleted by others.
	calls, held, led int
	// value is the value with which the key was registered, with the token entered; registered is
	// etcd's response to that.
	value      string
	entered    eldest.Token
	registered *pb.ResponseHeader
	// ends counts the candidacies that have ended; cause is why the last one ended. over is the
	// newest token that has ended.
	ends  int
	cause error
	over  eldest.Token
}

// farewell is how long a campaign that has ended waits for its key to be deleted.
const farewell = time.Second

func newCandidacy(g *group, election, key string) *candidacy {
	s := g.session
	c := &candidacy{group: g, name: loop.Name{Key: key}, kv: &recorder{KV: s.client}}
	c.user = loop.User{
		KV: c.kv, Queue: txn.ByCreateRevision{}, Entry: txn.Entry{Election: election, Lease: int64(s.id)}, Source: s.source,
		Policy: func(string) retryrpc.Policy { return policy(s.client) }, Shared: true, Tell: c.tell,
	}
	return c
}

// take gets the state machine of the key. After an error calls that wait keep theirs. The caller
// holds the mutex.
func (c *candidacy) take() error {
	machine, err := c.group.loop.Take(c.name, &c.user)
	if err == nil {
		c.machine = machine
	}
	return err
}

func (c *candidacy) state() *core.Candidate { return c.machine.State() }

// with reports whether the candidate has a key with this token. The caller holds the mutex.
func (c *candidacy) with(token eldest.Token) bool {
	return c.machine != nil && c.state().Exists() && c.state().Token == token
}

// tell receives each step of the machine, with the mutex.
func (c *candidacy) tell(s loop.Step) {
	if s.Effects.Ended > 0 {
		if c.led > 0 && errors.Is(s.Effects.Cause, eldest.ErrDeposed) {
			c.group.session.fail(s.Effects.Cause)
		}
		c.held, c.led, c.over = 0, 0, s.Effects.Ended
	}
	if s.Effects.Registered > 0 && s.Place != nil {
		c.value, c.entered, c.registered = string(s.Place.Value), s.Effects.Registered, c.kv.last()
	}
	if !s.After.Exists() && s.After.Want == core.Nothing && (s.Before.Exists() || s.Before.Want != core.Nothing) {
		c.ends++
		c.cause = s.After.Cause
	}
	c.settle(s.After)
}

// settle removes the candidacy when none of its state is needed: a session may lock a million
// names, one after another. The caller holds the mutex.
func (c *candidacy) settle(s *core.Candidate) {
	if c.users == 0 && (s.Phase == core.Idle && !s.Owed || s.Phase == core.Lost) {
		delete(c.group.candidacies, c.name.Key)
	}
}

// handle is an election or a mutex. Its methods are called with the mutex.
type handle interface {
	// stands is called when the key exists, while a call campaigns; wins when the candidate leads.
	// header is that of the response with which the call has registered, or joined the candidacy.
	stands(c *candidacy, token eldest.Token)
	wins(c *candidacy, token eldest.Token, header *pb.ResponseHeader)
}

// win campaigns until the session's candidate in the election leads. If value is not nil, the key
// then has this value, unless it was written to later. On error the key is deleted, unless other
// calls need it. The error is ctx's or etcd's, not wrapped, or wraps errGone or
// eldest.ErrNotElected.
func (s *Session) win(ctx context.Context, election string, want core.Want, value *string, h handle) error {
	if s.lost() != nil {
		// etcd's error for a lease that does not exist: programs open a new session after it. Why
		// the session was lost is the cause of its context.
		return rpctypes.ErrLeaseNotFound
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c, done := s.candidacy(election, keys.Candidate(election, int64(s.id)))
	defer done()
	err := c.win(ctx, want, value, h)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
		return rpctypes.ErrLeaseNotFound
	case errors.Is(err, eldest.ErrDeposed), errors.Is(err, eldest.ErrSessionLost), errors.Is(err, eldest.ErrResigned), errors.Is(err, errReleased):
		return fmt.Errorf("%w: %w", errGone, err)
	case errors.Is(err, eldest.ErrNotElected):
		return err
	}
	return plain(ctx, s.client, err)
}

// errGone wraps why a campaign ended: its key was deleted, or its session ended.
var errGone = errors.New("the key was deleted or the session has ended")

// win is Session.win without the conversion of the error.
func (c *candidacy) win(ctx context.Context, want core.Want, value *string, h handle) error {
	all := c.group.loop
	all.Lock()
	c.calls++
	all.Unlock()
	again, err := true, error(nil)
	for again {
		again, err = c.campaign(ctx, want, value, h)
	}
	all.Lock()
	c.calls--
	if err == nil || c.machine == nil || c.state().Phase == core.Lost {
		all.Unlock()
		return err
	}
	if wanted := c.state().Want != core.Nothing; wanted && (c.calls > 0 || c.held > 0) {
		all.Unlock()
		return err
	}
	patience := farewell
	if c.state().Phase == core.Entering {
		patience += requestTimeout // for the reply to the registration
	}
	wait := c.machine.Leave(&c.user, err)
	all.Unlock()
	bounded, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = wait(bounded) // otherwise in the background
	return err
}

// campaign is one attempt of win. again is true if another call's action has ended the attempt.
func (c *candidacy) campaign(ctx context.Context, want core.Want, value *string, h handle) (again bool, err error) {
	all := c.group.loop
	all.Lock()
	defer all.Unlock()
	if err := c.take(); err != nil {
		return false, err
	}
	ends, began := c.ends, c.state().Want == core.Nothing || c.state().Phase == core.Draining
	if began {
		c.user.Entry.Value = nil
		if value != nil {
			c.user.Entry.Value = []byte(*value)
		}
		c.machine.Watched(c.led > 0)
		c.machine.Do(core.Event{Kind: core.Campaign, Want: want})
	}
	until := func(cond func(core.Phase) bool) error { // releases the mutex meanwhile
		machine := c.machine
		all.Unlock()
		err := machine.Await(ctx, func() bool { return c.ends != ends || cond(c.state().Phase) })
		all.Lock()
		if err == nil && c.ends != ends {
			err = c.cause
		}
		return err
	}
	err = until(func(p core.Phase) bool {
		return p == core.Leading || p == core.Waiting || p == core.Proving && want != core.LeadNow
	})
	token := c.state().Token
	if err == nil && !c.with(token) {
		return true, nil // another call has started a new candidacy
	}
	header := c.registered
	if err == nil {
		h.stands(c, token)
		if !began || c.entered != token || value != nil && c.value != *value {
			all.Unlock()
			header, err = c.join(ctx, token, value)
			all.Lock()
		}
	}
	if err == nil {
		err = until(func(p core.Phase) bool { return p == core.Leading || p == core.Waiting && want == core.LeadNow })
	}
	switch {
	case errors.Is(err, errStale), ctx.Err() == nil && want != core.LeadNow && errors.Is(err, eldest.ErrNotElected):
		return true, err // a key that was already deleted, or the end of another call's attempt to lead at once
	case err == nil && c.state().Phase == core.Waiting:
		err = eldest.ErrNotElected
	case err == nil && c.state().Phase != core.Leading:
		return true, nil
	case err == nil:
		// etcd has confirmed that it leads; whether its lease is still valid is a separate
		// question.
		if err = c.group.session.lost(); err == nil {
			h.wins(c, c.state().Token, header)
		}
	}
	return false, err
}

// errStale means that a key was deleted before its watch has reported that.
var errStale = errors.New("the key was deleted")

// join uses a candidacy that another call began, or a key that existed before: it checks whether
// the key still exists, and replaces its value. It returns the header of etcd's last response.
func (c *candidacy) join(ctx context.Context, token eldest.Token, value *string) (header *pb.ResponseHeader, err error) {
	s, key := c.group.session, c.name.Key
	live, end := c.group.during(ctx)
	defer end()
	var found *mvccpb.KeyValue
	asking := policy(s.client)
	err = asking.Until(live, func(once context.Context) error {
		resp, err := s.client.Txn(once).If(clientv3.Compare(clientv3.CreateRevision(key), "=", int64(token))).Then(clientv3.OpGet(key)).Commit()
		if err == nil {
			header = resp.Header
		}
		if err == nil && resp.Succeeded {
			found = resp.Responses[0].GetResponseRange().Kvs[0]
		}
		return err
	})
	if err == nil && found != nil && value != nil && string(found.Value) != *value {
		seen := found.ModRevision
		err = asking.Until(live, func(once context.Context) error {
			answer, err := put(once, s.client, key, token, s.id, *value, seen)
			if answer != nil {
				header = answer
			}
			switch {
			case errors.Is(err, errSuperseded): // by an earlier attempt of this call, or by a write that may count as later
				return nil
			case errors.Is(err, eldest.ErrDeposed):
				found = nil
				return nil
			}
			return err
		})
	}
	if err != nil || found != nil {
		return header, err
	}
	c.group.loop.Lock()
	defer c.group.loop.Unlock()
	if c.deposed(token, header.Revision) {
		return nil, eldest.ErrDeposed
	}
	return nil, errStale
}

// deposed records that a key with this token did not exist at a revision, and reports whether the
// session has lost an election with it. The caller holds the mutex.
func (c *candidacy) deposed(token eldest.Token, revision int64) (lost bool) {
	if !c.with(token) {
		return false
	}
	lost = c.led > 0
	c.machine.Do(core.Event{Kind: core.KeyDeleted, Revision: revision})
	return lost
}

// hold counts one more user that leads with the present key. It has the key watched for elections,
// if the session is renewed here and can be ended. The caller holds the mutex.
func (c *candidacy) hold(leads bool) {
	c.held++
	if leads && !c.group.session.isReleased() {
		c.led++
	}
	c.machine.Watched(c.led > 0)
}

// resign deletes the key with this token, for all users, and returns etcd's response; nil if the
// key has another token or does not exist. leads means that the caller still leads if resign fails.
// If the session ends meanwhile, so do its candidates; those of the next group, which is the last one,
// delete what is left. It blocks for at most the session's TTL, or until ctx ends.
func (s *Session) resign(ctx context.Context, election, key string, token eldest.Token, leads bool) (*pb.ResponseHeader, error) {
	limited, cancel := context.WithTimeout(ctx, s.ttl())
	defer cancel()
	for {
		c, done := s.candidacy(election, key)
		hdr, err := c.resign(limited, token, leads)
		ended := !c.group.late && c.group.ctx.Err() != nil
		done()
		if err == nil || !ended || limited.Err() != nil {
			return hdr, err
		}
	}
}

// resign is Session.resign by one candidacy.
func (c *candidacy) resign(ctx context.Context, token eldest.Token, leads bool) (*pb.ResponseHeader, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all := c.group.loop
	all.Lock()
	defer all.Unlock()
	if err := c.take(); err != nil {
		return nil, err
	}
	machine := c.machine
	all.Unlock()
	err := machine.Await(ctx, func() bool { // until it is known whether there is a key
		return c.state().Phase != core.Entering && (c.state().Phase != core.Leaving || c.state().Token > 0)
	})
	all.Lock()
	switch {
	case err != nil:
		return nil, err
	case c.state().Phase == core.Lost: // nothing is known of the key
		return nil, context.Cause(c.group.ctx)
	case c.state().Phase == core.Idle:
		if err := c.take(); err != nil {
			return nil, err
		}
		c.machine.Do(core.Event{Kind: core.Leave, Token: token, Err: eldest.ErrResigned})
	case c.state().Token != token:
		return nil, nil
	}
	led := c.led > 0
	wait := c.machine.Leave(&c.user, eldest.ErrResigned)
	all.Unlock()
	err = wait(ctx)
	all.Lock()
	switch {
	case err != nil:
	case c.state().Phase == core.Lost: // the deletion was not confirmed
		return nil, context.Cause(c.group.ctx)
	default:
		return c.kv.last(), nil
	}
	if leads {
		c.machine.Do(core.Event{Kind: core.Keep})
		if c.with(token) {
			c.hold(led)
		}
	}
	return nil, err
}

// proclaim replaces the value of the key with this token, with one attempt only: an attempt that is
// given up may arrive late, even after a later proclaim. leads means that the caller leads: the
// session then ends when the key is deleted by others, even for a resumed election, whose key is
// known to exist only after this request.
func (c *candidacy) proclaim(ctx context.Context, token eldest.Token, value string, leads bool) (*pb.ResponseHeader, error) {
	s := c.group.session
	live, end := c.group.during(ctx)
	defer end()
	answer, err := put(live, s.client, c.name.Key, token, s.id, value, 0)
	c.group.loop.Lock()
	defer c.group.loop.Unlock()
	switch {
	case errors.Is(err, eldest.ErrDeposed):
		c.deposed(token, answer.Revision)
	case err != nil || !leads || s.isReleased() || token <= c.over || c.take() != nil:
	default:
		if c.state().Phase == core.Idle {
			c.machine.Do(core.Event{Kind: core.Keep, Token: token, Revision: answer.Revision})
		}
		if c.with(token) && c.led == 0 && c.state().Phase != core.Waiting {
			c.hold(true)
		}
	}
	return answer, err
}
