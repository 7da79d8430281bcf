package echo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/elector"
)

// The ways to the service.
const (
	Direct    = "direct"
	Forwarded = "forwarded"
	Plain     = "floor"
)

const (
	// ttl is longer than any pause of a busy machine.
	ttl = time.Minute
	// leave bounds the requests to etcd when the service ends.
	leave = 3 * time.Second
)

// Service is a running service. It is made by Start; Close must be called. Its methods are safe for
// concurrent use.
type Service struct {
	addresses map[string]string
	arrived   map[string]*atomic.Int64

	// live is the context of the nodes; its cause is the error of a node that ended by itself.
	live    context.Context
	end     context.CancelCauseFunc
	plain   *grpc.Server
	running sync.WaitGroup
}

// Start starts the servers, and blocks until one node leads and the other follows it, or ctx ends,
// which bounds nothing else. Both nodes use the client, which must be open until Close has returned.
// If it fails, nothing is left running.
func Start(ctx context.Context, client *clientv3.Client, election string) (*Service, error) {
	s := &Service{addresses: map[string]string{}, arrived: map[string]*atomic.Int64{}, plain: grpc.NewServer()}
	for _, way := range []string{Direct, Forwarded, Plain} {
		s.arrived[way] = &atomic.Int64{}
	}
	s.live, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	err := s.start(ctx, elector.Config{Election: election, Source: elector.Always(elector.Client(client)), Leave: leave})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("starting a service: %w", err)
	}
	return s, nil
}

func (s *Service) start(ctx context.Context, cfg elector.Config) error {
	cfg.Session.TTL = ttl
	if err := s.node(ctx, Direct, cfg, elector.Leading); err != nil {
		return err
	}
	if err := s.node(ctx, Forwarded, cfg, elector.Following); err != nil {
		return err
	}
	listener, err := s.listen(Plain)
	if err != nil {
		return err
	}
	s.plain.RegisterService(&description, handler(func(context.Context) { s.arrived[Plain].Add(1) }))
	s.running.Go(func() { _ = s.plain.Serve(listener) }) // until Close
	return nil
}

// listen returns the listener of the first server on a way.
func (s *Service) listen(way string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		s.addresses[way] = l.Addr().String()
	}
	return l, err
}

// node starts a node, whose ID is the way, and blocks until it has the role.
func (s *Service) node(ctx context.Context, way string, cfg elector.Config, role elector.Role) error {
	listener, err := s.listen(way)
	if err != nil {
		return err
	}
	cfg.NodeID = way
	node, err := curator.New(curator.Config{
		Elector: cfg, Listeners: []curator.Listener{{Listener: listener}},
		Services: func(_ context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error {
			r.RegisterService(&description, handler(func(ctx context.Context) { s.arrived[wayOf(ctx)].Add(1) }))
			return nil
		},
		VerifyHop: func(context.Context, string) error { return nil }, // otherwise Forwarded reports no hop without TLS
	})
	if err != nil {
		_ = listener.Close()
		return err
	}
	s.running.Go(func() { s.end(node.Run(s.live)) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.live, func() { cancel(context.Cause(s.live)) })()
	_, err = node.Watch().NextWhere(ctx, func(now elector.Status) bool { return now.Role() == role })
	if err != nil {
		return fmt.Errorf("waiting until node %q is %v: %w", way, role, err)
	}
	return nil
}

// wayOf returns the way on which a call came to the node that leads.
func wayOf(ctx context.Context) string {
	if _, _, ok := curator.Forwarded(ctx); ok {
		return Forwarded
	}
	return Direct
}

// Caller returns a caller on a way. It does not block: the first call connects.
func (s *Service) Caller(way string) (*Caller, error) {
	conn, err := grpc.NewClient(s.addresses[way], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &Caller{conn: conn}, nil
}

// Calls are how many calls have come to a handler so far, by way. A call is counted before it is
// answered.
type Calls map[string]int64

// Calls returns the current counts.
func (s *Service) Calls() Calls {
	now := Calls{}
	for way, n := range s.arrived {
		now[way] = n.Load()
	}
	return now
}

// ErrOtherWay is returned by Took for calls that took another way than the expected one.
var ErrOtherWay = errors.New("calls took another way")

// Took returns an error that wraps ErrOtherWay unless, between two counts, exactly n calls have
// come to a handler, all of them by this way.
func (before Calls) Took(after Calls, way string, n int64) error {
	for each := range after {
		want := int64(0)
		if each == way {
			want = n
		}
		if got := after[each] - before[each]; got != want {
			return fmt.Errorf("%w: of %d calls %s, %d were counted as %s", ErrOtherWay, n, way, got, each)
		}
	}
	return nil
}

// Close ends the servers, and blocks until they have ended: at most a few seconds, also if etcd does
// not answer. Calls in flight fail. Callers must be closed by their owners.
func (s *Service) Close() {
	s.end(nil)
	s.plain.Stop()
	s.running.Wait()
}
