package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/retry"
)

// Group keeps a node in any number of elections with one session: all keys are bound to one lease,
// and one renewal serves all of them. It is made by NewGroup and needs no clean-up. All methods are
// safe for concurrent use.
//
// The session is opened by the first Run and closed when the last one returns. If it is lost, the
// rounds of all elections end, and then one new session serves all of them. Config.Source is called
// for each session, when the previous one has been closed; lead functions of the previous session,
// whose contexts have ended, may still be running.
type Group struct {
	cfg      Config
	instance string
	log      log
	// slots has one element for each election that enters or leaves its queue.
	slots chan struct{}

	mu      sync.Mutex
	running map[string]struct{}

	// opening is held by the Run that opens or closes the session; it guards joint and left. It is
	// taken in order to close the session while no Run is in an election, with mu held: no other Run
	// takes it before.
	opening chan struct{}
	joint   *joint
	// left is the lease that was not revoked when its session ended; 0: none.
	left clientv3.LeaseID
}

// NewGroup makes a group. It sends nothing. Config.Election must be empty, and Transfer, TakeOver
// and Standby must not be set: only an Elector has those. AddressOf, Observer and Serve have no
// effect. The error wraps eldest.ErrInvalid.
func NewGroup(cfg Config) (*Group, error) {
	g, err := newGroup(cfg)
	if err != nil {
		return nil, failed("new group", cfg.Election, err)
	}
	return g, nil
}

func newGroup(cfg Config) (*Group, error) {
	switch {
	case cfg.Election != "":
		return nil, invalid("Config.Election is set: a group takes the name at each Run")
	case cfg.Transfer, cfg.TakeOver, cfg.Standby != nil:
		return nil, invalid("Config.Transfer, TakeOver or Standby is set: a group supports none of them")
	}
	cfg, err := cfg.withDefaults("any")
	if err != nil {
		return nil, err
	}
	g := &Group{
		cfg: cfg, instance: identity.NewInstance(), slots: make(chan struct{}, cfg.Starts),
		running: make(map[string]struct{}), opening: make(chan struct{}, 1),
	}
	g.log.to, g.log.attrs = cfg.Logger, []any{"node", cfg.NodeID}
	_, err = cfg.value(g.instance, time.Second)
	return g, err
}

// Run campaigns in one election again and again until ctx ends; then it returns an error that
// wraps ctx's cause. It is called once for each election, each call on a goroutine of its own:
// it blocks, and lead is called on that goroutine. The other elections of the group go on when
// one Run ends.
//
// A round is: wait for the session, register, wait until this node leads, call lead, and resign.
// After each round, however it ended, another one follows after Config.Backoff, which starts anew
// after a stable round. So a lead function that returns, with or without an error, gives leadership
// up, and the node campaigns again, at the end of the queue.
//
// At most Config.Starts elections of the group enter or leave their queues at a time; the others
// wait. While etcd is away that may take until the session is lost; a Run that has not registered yet
// ends with ctx.
//
// lead is called once for each tenure, with a context that carries ctx's values and ends with ctx
// or the tenure, whichever is first. Run waits for lead, however long it takes, so lead never
// overlaps itself in one election (G7). Meanwhile the key is kept, until Config.Drain after the end
// of lead's context; then it is given up, so that another node can lead.
//
// When Run returns, the key has been deleted; if that took longer than Config.Leave, it is deleted
// in the background while the session lives. Run returns these errors before anything is sent:
// eldest.ErrInvalid for a nil argument or a bad name; eldest.ErrCampaigning while another Run is in
// the election.
func (g *Group) Run(ctx context.Context, name string, lead func(ctx context.Context, l *Leadership) error) error {
	err := g.enter(ctx, name, lead)
	if err == nil {
		defer g.leave(name) // also after a panic of the user's function
		err = g.rounds(ctx, name, lead)
	}
	return failed("run", name, err)
}

// enter records that a Run is in an election.
func (g *Group) enter(ctx context.Context, name string, lead func(context.Context, *Leadership) error) error {
	if ctx == nil || lead == nil {
		return invalid("the context or the lead function is nil")
	}
	if err := (election.Config{Election: name}).Check(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, running := g.running[name]; running {
		return fmt.Errorf("%w: another Run of the group is in this election", eldest.ErrCampaigning)
	}
	g.running[name] = struct{}{}
	return nil
}

// leave records that the Run has left its election. The last Run to leave closes the session.
func (g *Group) leave(name string) {
	g.mu.Lock()
	delete(g.running, name)
	last := false
	if len(g.running) == 0 {
		select {
		case g.opening <- struct{}{}:
			last = true
		default: // an earlier Run is closing the session
		}
	}
	g.mu.Unlock()
	if !last {
		return
	}
	if g.joint != nil { // a Run that starts meanwhile waits for opening
		g.end(g.joint)
		g.joint = nil
	}
	<-g.opening
	g.log.flush()
}

func (g *Group) rounds(ctx context.Context, name string, lead func(context.Context, *Leadership) error) error {
	for attempt := 0; ; attempt++ {
		j, err := g.session(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = g.round(ctx, name, j, lead, &began)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) >= g.cfg.stable(j.Session) {
			attempt = 0
		}
		pause, level := g.cfg.Backoff(attempt), slog.LevelInfo
		if j.Err() != nil {
			level = slog.LevelDebug // all rounds end; the session's one log line has the reason
		}
		g.log.line(level, "election round ended", "election", name, "reason", err, "pause", pause)
		if retry.Sleep(ctx, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

// round registers, waits, leads and leaves. When it returns, nothing of it is running, except that
// a deletion may be in progress. began is set when the key is registered and when the election is
// won, but not when a suspended tenure goes on.
func (g *Group) round(ctx context.Context, name string, j *joint, lead func(context.Context, *Leadership) error, began *time.Time) error {
	c, err := election.New(election.Config{
		Election: name, Session: j.Session, KV: j.clients.KV, Watcher: j.clients.Watcher, Value: j.value, Options: g.cfg.Candidate,
	})
	if err != nil {
		return err
	}
	leave := sync.OnceFunc(func() {
		g.slots <- struct{}{} // the timeout starts when there is a slot
		late, cancel := g.late(ctx)
		defer cancel()
		_ = c.Withdraw(late) // if it fails, the key is deleted in the background
		<-g.slots
		_ = c.Close(late)
	})
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx) // nothing was sent
	}
	defer leave()
	_, err = c.Register(ctx)
	<-g.slots
	if err != nil {
		return err
	}
	*began = time.Now()
	for led := false; ; led = true {
		// When ctx ends, the wait ends only with a slot: all elections may end at the same time.
		stop := context.AfterFunc(ctx, leave)
		l, err := c.Await(context.WithoutCancel(ctx))
		switch {
		case !stop():
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		if !led {
			*began = time.Now()
		}
		err = g.tenure(ctx, l, lead)
		// The error of the lead function may wrap the suspension of another tenure.
		if !errors.Is(err, eldest.ErrSuspended) || !errors.Is(l.Err(), eldest.ErrSuspended) || ctx.Err() != nil {
			return err
		}
		// The key may still exist: a suspended leader leads again, unless it was evicted.
	}
}

// tenure calls the lead function, and holds a slot while it resigns.
func (g *Group) tenure(ctx context.Context, l *Leadership, lead func(context.Context, *Leadership) error) error {
	slot := func() {}
	defer func() { slot() }()
	var result, over error // over is why the function's context has ended
	err := l.Lead(ctx, func(ctx context.Context) error {
		defer func() {
			g.slots <- struct{}{}
			slot = func() { <-g.slots }
		}()
		defer g.drain(ctx, l)()
		result = lead(ctx, l)
		over = context.Cause(ctx)
		return result
	})
	// Otherwise the reason why the round ended has the result.
	if ctx.Err() != nil || errors.Is(l.Err(), eldest.ErrSuspended) {
		g.log.late(result, over, "election", l.Election(), "key", l.Key(), "token", int64(l.Token()))
	}
	return cmp.Or(err, l.Err())
}

// drain resigns if returned has not been called when Config.Drain has passed after the end of ctx.
func (g *Group) drain(ctx context.Context, l *Leadership) (returned func()) {
	done, over := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		patience, cancel := context.WithTimeout(context.Background(), g.cfg.Drain)
		defer cancel()
		if retry.Wait(patience, done) == nil {
			return
		}
		g.log.line(slog.LevelError, "lead function ignores its context", "election", l.Election(),
			"key", l.Key(), "token", int64(l.Token()), "waited", g.cfg.Drain)
		late, cancel := g.late(ctx)
		defer cancel()
		_ = l.Resign(late)
	})
	return func() {
		close(done)
		if !stop() {
			<-over
		}
	}
}

// late returns a context for the requests of leaving: ctx itself has ended.
func (g *Group) late(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Leave)
}
