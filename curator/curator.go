package curator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/rawframe"
	"github.com/eldest-io/eldest/internal/retry"
)

// Curator is one node of a leader-elected service. It is made by New, and does nothing until Run.
// All methods are safe for concurrent use.
type Curator struct {
	cfg     Config
	elector *elector.Elector
	started atomic.Bool

	// servers are open in every state. The services that this node answers itself are registered
	// with them (local). Every other call comes to receive, as frames, and its route decides whether
	// it is served or forwarded.
	servers servers
	local   *local
	reads   reads
	router  *router
	backlog *backlog
	traffic traffic
	beat    heartbeat
	// lookAgain is how long a call waits for another route, or for the same leader to be reachable
	// again, before the next attempt.
	lookAgain retry.Backoff

	// answering ends, by stopping, when the node begins to stop. Then streams that wait for changes
	// end.
	answering context.Context
	stopping  context.CancelFunc
	// halted ends, by Stop, when calls are not waited for any more.
	halted context.Context
	halt   context.CancelFunc

	// goroutines are those that outlive their call or belong to none: receives from callers whose
	// calls have ended, the heartbeats, and the closing of connections.
	goroutines sync.WaitGroup
}

// New makes a curator. It sends nothing and does not touch the listeners. The error wraps
// eldest.ErrInvalid.
func New(cfg Config) (*Curator, error) {
	c, err := build(cfg, defaultHeartbeat)
	if err != nil {
		var op *eldest.OpError
		if errors.As(err, &op) { // the elector's
			return nil, err
		}
		return nil, failed("new curator", cfg.Elector.Election, err)
	}
	return c, nil
}

func build(cfg Config, beat heartbeat) (*Curator, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Curator{cfg: cfg, beat: beat, backlog: newBacklog(cfg.MaxWaiting, cfg.MaxHeld), lookAgain: retry.Jittered(50*time.Millisecond, 500*time.Millisecond)}
	if c.elector, err = elector.New(cfg.Elector); err != nil {
		return nil, err
	}
	if !utf8.ValidString(cfg.Elector.Election) {
		return nil, invalid("the election name %q, which is sent to callers, is not UTF-8", cfg.Elector.Election)
	}
	c.answering, c.stopping = context.WithCancel(context.Background())
	c.halted, c.halt = context.WithCancel(context.Background())
	c.router = routing.New[map[string]*method](c.connect)
	c.servers = newServers(cfg.Listeners, c.serverOptions())
	late := func(err error) {
		cfg.Logger.Error("service not registered", "election", cfg.Elector.Election, "node", cfg.Elector.NodeID, "error", err)
	}
	c.local = newLocal(c.servers, late)
	c.registerOwn(c.local)
	if cfg.Local != nil {
		cfg.Local(c.local)
	}
	if _, err := c.local.close(); err != nil {
		return nil, err
	}
	if c.reads, err = newReads(cfg, c.local.names, late); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Curator) serverOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		// Otherwise the server would close the connections of the other nodes because of their
		// pings.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLimit, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		// The limits apply at each node that a call comes to, so a call that is too large does not
		// reach the leader.
		grpc.MaxRecvMsgSize(c.cfg.MaxMessage),
		grpc.MaxHeaderListSize(uint32(c.cfg.MaxMetadata)),
		grpc.MaxConcurrentStreams(uint32(c.cfg.MaxStreams)),
	}
	options = append(options, hopReader{c.cfg.VerifyHop}.options()...)
	options = append(options, c.cfg.ServerOptions...)
	return append(options, grpc.ForceServerCodecV2(rawframe.Codec{}), grpc.UnknownServiceHandler(c.receive))
}

// Run serves until ctx ends, Stop is called, or a listener fails; then it returns an error that
// wraps ctx's cause, eldest.ErrClosed, or the listener's error. Calls are accepted at once, and
// answered whichever node leads. What the leader serves is registered by Config.Services, once for
// each tenure.
//
// When Run ends, it does the following, in this order:
//
//   - It begins no more calls here, and notifies the other nodes.
//   - If this node leads, it waits for the unary calls of its tenure, for at most Config.Drain.
//   - It gives up leadership, as elector.Elector.Withdraw describes it.
//   - It accepts no more connections, and waits for calls that were forwarded, and for calls that wait
//     for the next leader and are then forwarded to it, for at most Config.Shutdown.
//   - It closes the servers, and with them what is still in flight (Unavailable).
//
// Stop ends both waits. When Run has returned, nothing of it is left running, except handlers,
// Config.Background and Config.Elector.Standby that ignore their contexts: then Run returns after
// Config.Elector.Drain, or a second more for services of Config.Local, and its error wraps
// eldest.ErrStuck as well.
//
// A curator runs once; a second call returns eldest.ErrClosed.
func (c *Curator) Run(ctx context.Context) error {
	election := c.cfg.Elector.Election
	if ctx == nil {
		return failed("run curator", election, invalid("the context is nil"))
	}
	if !c.started.CompareAndSwap(false, true) {
		return failed("run curator", election, fmt.Errorf("%w: Run was called before", eldest.ErrClosed))
	}
	return failed("run curator", election, c.run(ctx))
}

func (c *Curator) run(ctx context.Context) error {
	failures, stood := c.servers.serve(c.cfg.Listeners), make(chan error, 1)
	standing, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	go func() { stood <- c.elector.Run(standing, c.lead) }()
	following, unfollow := context.WithCancel(context.Background())
	var followers sync.WaitGroup
	followers.Go(func() { _ = c.router.FollowStatus(following, c.elector.Watch()) }) // until unfollow
	log := c.cfg.Logger.With("election", c.cfg.Elector.Election, "node", c.cfg.Elector.NodeID)
	followers.Go(func() { c.router.Log(following, log) })

	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-c.halted.Done():
		cause = fmt.Errorf("%w: Stop was called", eldest.ErrClosed)
	case cause = <-failures:
	}
	c.stopping()
	reason := fmt.Errorf("%w: node %q is stopping", eldest.ErrClosed, c.cfg.Elector.NodeID)
	if t := c.router.Drain(reason); t != nil {
		t.Drain(c.halted, c.cfg.Drain)
	}
	_ = c.elector.Withdraw(standing, cause) // still follows the next leader, for the calls that wait
	if err := c.close(c.cfg.Shutdown, reason); err != nil {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	leave(cause)
	if err := <-stood; errors.Is(err, eldest.ErrStuck) {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	unfollow()
	followers.Wait()
	for _, l := range c.cfg.Listeners {
		_ = l.Close() // its server has closed it, unless it never served
	}
	return cause
}

// Stop makes Run end without waiting for calls: those in flight end (Unavailable). The order of the
// steps stays the same: leadership is given up when the handlers, whose contexts have ended, have
// returned. Config.Elector.Drain bounds the wait for them, and Config.Elector.Leave the request to
// etcd. A program calls Stop at a second signal, for example, when ctx has ended at the first one.
// Stop does not block, and may be called at any time, also before Run and several times.
func (c *Curator) Stop() { c.halt() }

// close ends the servers: gracefully within limit, then by force, after the calls that wait have
// been refused. The connections to the leader are closed last, because calls are still in flight
// there. The error is eldest.ErrStuck if handlers do not return although their calls have ended:
// handlers of local services, or interceptors in front of all services.
func (c *Curator) close(limit time.Duration, reason error) error {
	stopped := c.servers.each((*grpc.Server).GracefulStop)
	over := within(c.halted, limit, stopped)
	c.router.Stop(reason)
	if !over && !within(context.Background(), answerTimeout, stopped) {
		forced := c.servers.each((*grpc.Server).Stop) // this waits for handlers as well
		if !within(context.Background(), handlerTimeout, forced) || !within(context.Background(), handlerTimeout, stopped) {
			c.router.Disconnect(errStopped)
			return fmt.Errorf("%w: a handler of a local service, or an interceptor, has not returned", eldest.ErrStuck)
		}
	}
	c.router.Disconnect(errStopped)
	c.goroutines.Wait()
	return nil
}

// answerTimeout bounds how long the answers to refused calls may take to be sent.
const answerTimeout = 100 * time.Millisecond

// handlerTimeout is how long handlers may take to return after their connections are closed.
const handlerTimeout = time.Second

// within reports whether done is closed in time, and before ctx ends.
func within(ctx context.Context, limit time.Duration, done <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return retry.Wait(ctx, done) == nil
}

var errStopped = errors.New("this node stopped")

// Status returns the current status of this node; see elector.Elector.Status.
func (c *Curator) Status() elector.Status { return c.elector.Status() }

// Watch returns a watch of the status; see elector.Elector.Watch.
func (c *Curator) Watch() *elector.Watch { return c.elector.Watch() }

// SetAddress replaces Config.Elector.Address, and the other nodes forward to the new address; see
// elector.Elector.SetAddress. Calls under way over connections to the old address continue there, and
// nodes dial the old address until they have received the new one. So keep both open for a while.
func (c *Curator) SetAddress(ctx context.Context, address string) error {
	return c.elector.SetAddress(ctx, address)
}

func failed(op, election string, err error) error {
	if err == nil {
		return nil
	}
	return &eldest.OpError{Op: op, Election: election, Err: err}
}
