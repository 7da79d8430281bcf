package resolver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/retry"
)

// DefaultTimeout is how long a node may be without knowing who leads: longer than a
// hand-over, shorter than callers usually wait.
const DefaultTimeout = 2 * time.Second

// NodesConfig says which nodes are asked who leads. Addresses is required. It is copied
// by FromNodes.
type NodesConfig struct {
	// Addresses are those of nodes of the service, as grpc.NewClient takes them. It
	// need not be all of them, and not all of them need be up. One is asked at a time,
	// beginning with any.
	Addresses []string
	// DialOptions say how the nodes are dialled to be asked. Empty means as the client
	// dials the leader: credentials, dialer, and the name that certificates must be
	// valid for, which without ServerName is that of the target, and with it each
	// address's own. Either way a keepalive, which can be overridden here, notices a
	// node that fell silent within 13 s.
	DialOptions []grpc.DialOption
	// ServerName, if set, gives the name that the leader's certificate must be valid
	// for. nil means that of the target. It must be quick.
	ServerName func(leader identity.Identity) string
	// Timeout is how long a node may be without knowing who leads, from when it is
	// dialled, before the next one is asked. 0 means DefaultTimeout.
	Timeout time.Duration
	// Backoff gives the pause after the n-th node in a row that did not know, from 0.
	// nil means doubling from 25 ms to 1 s with jitter; a pause is 5 ms at least.
	Backoff func(attempt int) time.Duration
}

// FromNodes returns a builder for grpc.WithResolvers, for any number of connections to
// any elections. It sends nothing. The error wraps eldest.ErrInvalid.
func FromNodes(cfg NodesConfig) (grpcresolver.Builder, error) {
	switch {
	case len(cfg.Addresses) == 0:
		return nil, invalid("NodesConfig.Addresses is empty")
	case slices.Contains(cfg.Addresses, ""):
		return nil, invalid("NodesConfig.Addresses has an empty one")
	case cfg.Timeout < 0:
		return nil, invalid("NodesConfig.Timeout %v is negative", cfg.Timeout)
	}
	cfg.Addresses, cfg.DialOptions = slices.Clone(cfg.Addresses), slices.Clone(cfg.DialOptions)
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	cfg.Backoff = retry.Or(cfg.Backoff, retry.Default())
	return fromNodes{cfg}, nil
}

type fromNodes struct{ cfg NodesConfig }

// Scheme returns "eldest".
func (fromNodes) Scheme() string { return Scheme }

// Build starts to ask who leads the election that the target names, and returns at
// once. The error wraps eldest.ErrInvalid; gRPC tells it to the callers.
func (b fromNodes) Build(target grpcresolver.Target, conn grpcresolver.ClientConn, opts grpcresolver.BuildOptions) (grpcresolver.Resolver, error) {
	election, err := electionOf(target)
	if err != nil {
		return nil, err
	}
	n := &nodesSource{cfg: b.cfg, to: publisher{election: election, conn: conn, serverName: b.cfg.ServerName}}
	n.dialling = []grpc.DialOption{
		// gRPC pings no more often than every ten seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		// Which node to ask, and when again, is decided here.
		grpc.WithDisableServiceConfig(),
	}
	if len(b.cfg.DialOptions) > 0 {
		n.dialling = append(n.dialling, b.cfg.DialOptions...)
	} else {
		n.dialling = append(n.dialling, like(opts, b.cfg.ServerName != nil)...)
	}
	return follow(n.run), nil
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

// nodesSource asks nodes for one connection.
type nodesSource struct {
	cfg      NodesConfig
	dialling []grpc.DialOption
	to       publisher
}

// run asks one node after the other, each for as long as it knows who leads.
func (n *nodesSource) run(ctx context.Context) {
	failed := 0
	for at := rand.IntN(len(n.cfg.Addresses)); ; at = (at + 1) % len(n.cfg.Addresses) {
		address, asked := n.cfg.Addresses[at], time.Now()
		learned, err := n.ask(ctx, address)
		if ctx.Err() != nil {
			return
		}
		n.to.unknown(fmt.Errorf("node %q: %w", address, err))
		// A node that tells and hangs up at once, again and again, is no success.
		if learned && time.Since(asked) >= n.cfg.Timeout {
			failed = 0
		}
		if retry.Sleep(ctx, n.cfg.Backoff(failed)) != nil {
			return
		}
		failed++
	}
}

// ask publishes what one node tells until it stops telling, or has not known for the
// time-out; so the error is never nil. It tells whether the node ever knew.
func (n *nodesSource) ask(ctx context.Context, address string) (learned bool, err error) {
	conn, err := grpc.NewClient(address, n.dialling...)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // nothing is left to go wrong
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
			return learned, fmt.Errorf("it stands in the election %q", got)
		}
		knew := knows
		knows, reason = n.take(answer)
		switch {
		case knows:
			learned = true
			patience.Stop()
		case knew:
			patience.Reset(n.cfg.Timeout) // whoever is elected is known to all in a moment
		}
	}
	if errors.Is(context.Cause(ctx), errImpatient) {
		err = fmt.Errorf("%w within %v: %w", errImpatient, n.cfg.Timeout, reason)
	}
	return learned, err
}

var errImpatient = errors.New("it does not know who leads")

// take takes in what a node tells. It reports whether the node knows who leads, and if
// not, why.
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
		return false, fmt.Errorf("it knows of token %d, after %d", answer.GetToken(), n.to.newest)
	}
	return true, nil
}
