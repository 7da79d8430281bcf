package resolver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/retry"
)

// DefaultTimeout is how long a node may report no leader: longer than a hand-over, shorter than
// callers usually wait.
const DefaultTimeout = 2 * time.Second

// NodesConfig configures FromNodes. Addresses is required. It is copied by FromNodes.
type NodesConfig struct {
	// Addresses are those of nodes of the service, in the format of grpc.NewClient. They need not
	// be all nodes, and some may be down. One node is queried at a time, beginning with a random
	// one. The last eight other nodes that were reported as leaders are queried as well, after
	// these. With ServerName that includes nodes of Addresses, which then have that name.
	Addresses []string
	// Endpoints has, by node ID, the address to dial in place of the one that the node publishes,
	// or does not publish: for clients behind a NAT or a forwarded port. Other nodes are dialled at
	// the address that they publish.
	Endpoints map[string]string
	// DialOptions are the options with which the nodes are dialled for queries. Empty means the
	// options with which the client dials the leader: credentials, dialer, and the name that
	// certificates must be valid for. Without ServerName that name is the target's. With it, it is
	// each address's own, and for a node that led the one that ServerName returned for it, unless
	// one is set here, or the credentials have one. In both cases a keepalive, which can be
	// overridden here, detects within 13 s that a node does not respond.
	DialOptions []grpc.DialOption
	// ServerName, if set, returns the name that the leader's certificate must be valid for. nil
	// means the name in the target. It must be quick.
	ServerName func(leader identity.Identity) string
	// Timeout is how long a node may report no leader, from when it is dialled, before the next one
	// is queried. 0 means DefaultTimeout.
	Timeout time.Duration
	// Backoff returns the pause after the n-th consecutive node that reported no leader, counted
	// from 0. nil means doubling from 25 ms to 1 s with jitter; a pause is at least 5 ms.
	Backoff func(attempt int) time.Duration
}

// FromNodes returns a builder for grpc.WithResolvers, for any number of connections to
// any elections. It sends nothing. The error wraps eldest.ErrInvalid.
func FromNodes(cfg NodesConfig) (grpcresolver.Builder, error) {
	switch {
	case len(cfg.Addresses) == 0:
		return nil, invalid("NodesConfig.Addresses is empty")
	case slices.Contains(cfg.Addresses, ""):
		return nil, invalid("NodesConfig.Addresses contains an empty address")
	case cfg.Timeout < 0:
		return nil, invalid("NodesConfig.Timeout %v is negative", cfg.Timeout)
	}
	if err := checkEndpoints("NodesConfig", cfg.Endpoints); err != nil {
		return nil, err
	}
	cfg.Endpoints = maps.Clone(cfg.Endpoints)
	cfg.Addresses, cfg.DialOptions = slices.Clone(cfg.Addresses), slices.Clone(cfg.DialOptions)
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	cfg.Backoff = retry.Or(cfg.Backoff, retry.Default())
	var elections sync.Map // by name, the nodes that led: *learned
	return builder(func(to publisher, opts grpcresolver.BuildOptions) func(context.Context) {
		to.serverName, to.endpoints = cfg.ServerName, cfg.Endpoints
		led, _ := elections.LoadOrStore(to.election, new(learned))
		n := &nodesSource{cfg: cfg, known: newKnown(cfg.Addresses, led.(*learned)), to: to}
		n.dialling = []grpc.DialOption{
			// gRPC pings no more often than every ten seconds.
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
			// This package decides which node is queried, and when again.
			grpc.WithDisableServiceConfig(),
		}
		if len(cfg.DialOptions) > 0 {
			n.dialling = append(n.dialling, cfg.DialOptions...)
		} else {
			n.dialling = append(n.dialling, like(opts, cfg.ServerName != nil)...)
		}
		return n.run
	}), nil
}

// like returns the options with which a node is dialled as the client dials the leader.
func like(opts grpcresolver.BuildOptions, ownNames bool) []grpc.DialOption {
	var options []grpc.DialOption
	switch {
	case opts.CredsBundle != nil:
		options = append(options, grpc.WithCredentialsBundle(opts.CredsBundle))
	case opts.DialCreds != nil:
		options = append(options, grpc.WithTransportCredentials(opts.DialCreds.Clone()))
	}
	if opts.Dialer != nil {
		options = append(options, grpc.WithContextDialer(opts.Dialer))
	}
	if opts.Authority != "" && !ownNames {
		options = append(options, grpc.WithAuthority(opts.Authority))
	}
	return options
}

// nodesSource queries nodes for one connection.
type nodesSource struct {
	cfg      NodesConfig
	known    *known
	dialling []grpc.DialOption
	to       publisher
}

// run queries one node after another, each for as long as it reports a leader.
func (n *nodesSource) run(ctx context.Context) {
	for failed := 0; ; {
		node, asked := n.known.next(), time.Now()
		learned, err := n.ask(ctx, node)
		if ctx.Err() != nil {
			return
		}
		n.to.unknown(fmt.Errorf("node %q: %w", node.address, err))
		// A node that reports a leader and then ends the stream at once does not count as a
		// success. A long timeout does not change what is a while.
		if learned && time.Since(asked) >= min(n.cfg.Timeout, DefaultTimeout) {
			failed = 0
			n.known.again()
		}
		if retry.Sleep(ctx, n.cfg.Backoff(failed)) != nil {
			return
		}
		failed++
	}
}

// dial makes a connection to a node. gRPC resolves the address of a node of the config. One that led
// is dialled as the client dials the leader: the dialer receives the published address itself.
func (n *nodesSource) dial(node place) (*grpc.ClientConn, error) {
	if node.token == 0 { // it has not led
		return grpc.NewClient(node.address, n.dialling...)
	}
	b := manual.NewBuilderWithScheme("leader")
	b.InitialState(grpcresolver.State{Addresses: []grpcresolver.Address{{Addr: node.address}}})
	only := grpc.WithResolvers(b)
	if node.serverName != "" {
		only = grpc.WithResolvers(named{b, node.serverName})
	}
	return grpc.NewClient("leader:///"+url.PathEscape(node.address), append([]grpc.DialOption{only}, n.dialling...)...)
}

// named is a resolver with the name that certificates must be valid for, unless the credentials or
// grpc.WithAuthority have another one. If that name was passed as grpc.WithAuthority, gRPC would
// refuse credentials with another one.
type named struct {
	grpcresolver.Builder
	name string
}

// OverrideAuthority returns the name.
func (n named) OverrideAuthority(grpcresolver.Target) string { return n.name }

// ask publishes what one node reports until its stream ends, or until it has reported no leader for
// the timeout; so the error is never nil. learned is true if the node has reported a leader.
func (n *nodesSource) ask(ctx context.Context, node place) (learned bool, err error) {
	conn, err := n.dial(node)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // the error has no consequences
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	patience := time.AfterFunc(n.cfg.Timeout, func() { giveUp(errImpatient) })
	defer patience.Stop()

	reason := errors.New("no answer")
	stream, err := curatorpb.NewCuratorClient(conn).CurrentLeader(ctx, &curatorpb.CurrentLeaderRequest{})
	for knows := false; err == nil; {
		var answer *curatorpb.CurrentLeaderResponse
		if answer, err = stream.Recv(); err != nil {
			break
		}
		if got := answer.GetElection(); got != n.to.election {
			return learned, fmt.Errorf("its election is %q", got)
		}
		knew := knows
		knows, reason = n.take(answer)
		switch {
		case knows:
			learned = true
			patience.Stop()
		case knew:
			patience.Reset(n.cfg.Timeout) // all nodes learn of a new leader within moments
		}
	}
	if errors.Is(context.Cause(ctx), errImpatient) {
		err = fmt.Errorf("%w within %v: %w", errImpatient, n.cfg.Timeout, reason)
	}
	return learned, err
}

var errImpatient = errors.New("no current leader was reported")

// take processes a node's response. It reports whether that contains a current leader, and if not,
// the reason.
func (n *nodesSource) take(answer *curatorpb.CurrentLeaderResponse) (knows bool, reason error) {
	switch answer.GetRole() {
	case curatorpb.CurrentLeaderResponse_ROLE_LEADING, curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING:
	default:
		reason = fmt.Errorf("%w: %s", eldest.ErrNoLeader, answer.GetReason())
		n.to.unknown(reason)
		return false, reason
	}
	current := n.to.leads(eldest.Token(answer.GetToken()), identity.Identity{
		NodeID: answer.GetLeaderNodeId(), Instance: answer.GetLeaderInstanceId(), Address: answer.GetLeaderAddress(),
	})
	if !current {
		return false, fmt.Errorf("token %d was reported after %d", answer.GetToken(), n.to.newest)
	}
	n.known.learn(n.to.published)
	return true, nil
}
