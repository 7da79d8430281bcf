package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// nodeFlags are the flags of "eldest service node".
type nodeFlags struct {
	*candidateFlags
	// listen is where requests are accepted, advertise what the other nodes dial; "" is the same as
	// listen.
	listen, advertise string
	takeOver          bool
	// drain and shutdown are those of curator.Config.
	drain, shutdown time.Duration
}

func newServiceNodeCmd() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use:   "node ELECTION NODE",
		Short: "Run one node of the key-value service until a signal ends it",
		Long: `Runs one node of a key-value service (eldest.kv.v1.KV) that is kept in etcd. It is a
candidate in ELECTION under the name NODE, which no other living process may have. The
leader answers all requests: the other nodes forward theirs to it.

SIGINT or SIGTERM ends it: a leader finishes the requests that it has begun, for at most
--drain, and gives up leadership; then the node waits for the requests that it has
forwarded, for at most --shutdown. A second signal ends both waits: these requests fail, and
leadership is given up all the same. A third one ends the process.

A node that crashed leaves its key in the queue until its lease expires. With --take-over
the next process that is started as NODE removes that key at once. Use it where a
supervisor starts a node only when it has ended: a process that still runs as NODE loses
leadership to it.

While etcd cannot be reached at the start it waits. It prints one line when it listens, and
one for each change of its role: leading, following, unknown. With --json each is an
object with event ("listening", "status"), time, election, node, and where they apply
address, role, key, token, leader, leader_address and reason.

The service is an example: it listens without TLS.
` + candidateHelp + `
Exit codes: 0 after a signal; 1 failed; 2 bad usage.
` + connect.Help,
		Example: `  eldest etcd --members 3
  eldest service node shop n1 --listen 127.0.0.1:7001 --endpoints 127.0.0.1:2379`,
		Args: cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args[0], "", ""); err != nil {
				return err
			}
			if err := f.checkListen(); err != nil {
				return err
			}
			return f.participate(cmd, args[0], func(ctx context.Context, p participant) error { return f.run(ctx, cmd, p, args[1]) })
		},
	}
	f.candidateFlags = addCandidateFlags(cmd)
	f.addKeeper(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "HOST:PORT for clients and for the other nodes")
	fl.StringVar(&f.advertise, "advertise", "", "the address that the other nodes dial (default: --listen)")
	fl.DurationVar(&f.drain, "drain", curator.DefaultDrain, "how long a leader that ends finishes its requests")
	fl.DurationVar(&f.shutdown, "shutdown", curator.DefaultShutdown, "how long a node that ends waits for forwarded requests")
	fl.BoolVar(&f.takeOver, "take-over", false, "remove the key that an earlier process of this NODE left")
	return cmd
}

// checkListen refuses a negative time or an invalid address before any request is sent to etcd, and an address without a
// host, which the other nodes could not dial.
func (f *nodeFlags) checkListen() error {
	if f.drain < 0 || f.shutdown < 0 {
		return cli.Usagef("--drain %v, --shutdown %v: want 0s, which is the default, or more", f.drain, f.shutdown)
	}
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return cli.Usagef("--listen %q: want HOST:PORT, as in 127.0.0.1:7001", f.listen)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return cli.Usagef("--listen %q: %q is no port; want HOST:PORT, as in 127.0.0.1:7001", f.listen, port)
	}
	return f.checkHost(host == "", net.ParseIP(host))
}

func (f *nodeFlags) checkHost(none bool, ip net.IP) error {
	if f.advertise == "" && (none || ip != nil && ip.IsUnspecified()) {
		return cli.Usagef("--listen %s: it must name a host that the other nodes can dial; or use --advertise to give them another address", f.listen)
	}
	return nil
}

// run serves until ctx ends or something fails for good.
func (f *nodeFlags) run(ctx context.Context, cmd *cobra.Command, p participant, node string) (err error) {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	served := false
	defer func() {
		if !served {
			err = errors.Join(err, listener.Close())
		}
	}()
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok { // the host may be a name for the unspecified address
		if err := f.checkHost(false, tcp.IP); err != nil {
			return err
		}
	}
	feeds := hooks.Tee(p.status.Hooks(), p.wait.Hooks(), hooks.Set{Session: lease.Hooks{Heartbeat: mute(p.wait)}})
	session := f.session()
	session.Keeper, session.Hooks = p.keeper, feeds.Session
	c, err := curator.New(curator.Config{
		Elector: elector.Config{
			Election: p.name, NodeID: node, Address: f.advertise,
			Source:    elector.Always(elector.Client(p.client)),
			Session:   session,
			Candidate: election.Options{Hooks: feeds.Candidate},
			Observer:  observe.Options{Hooks: feeds.Observer},
			Transfer:  !f.noTransfer,
			TakeOver:  f.takeOver,
		},
		Listeners: []curator.Listener{{Listener: listener}},
		Drain:     f.drain,
		Shutdown:  f.shutdown,
		Hooks:     p.status.Calls(),
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, server)
			return nil
		},
	})
	if err != nil {
		return err
	}
	p.status.Node(c, c.RoleHandler(elector.Leading))
	events := nodeEvents{out: cmd.OutOrStdout(), asJSON: cli.WantsJSON(cmd), election: p.name, node: node}
	telling, hush := context.WithCancel(context.Background())
	told := make(chan struct{})
	// The events are written on a goroutine of their own, so that nothing waits for their reader.
	go func() {
		defer close(told)
		err := events.write(time.Now(), nodeEvent{Event: "listening", Address: listener.Addr().String()})
		if err == nil {
			err = events.tell(telling, c.Watch())
		}
		if err != nil {
			p.fail(err)
		}
	}()
	served = true
	unhook := atSecondSignal(c.Stop)
	err = c.Run(ctx)
	unhook()
	hush()
	select {
	case <-told:
	case <-time.After(cli.LastLines):
	}
	return err
}

// atSecondSignal calls stop at the second of the signals that end a command; the first one ends the
// command's context. Then, or when unhook is called, signals have their previous effect again.
func atSecondSignal(stop func()) (unhook func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(signals)
		for range 2 {
			select {
			case <-signals:
			case <-over:
				return
			}
		}
		stop()
	}()
	return func() {
		close(over)
		<-done
	}
}

// nodeEvent is one line of "eldest service node --json".
type nodeEvent struct {
	Event         string       `json:"event"`
	Time          string       `json:"time"`
	Election      string       `json:"election"`
	Node          string       `json:"node"`
	Address       string       `json:"address,omitempty"`
	Role          string       `json:"role,omitempty"`
	Key           string       `json:"key,omitempty"`
	Token         eldest.Token `json:"token,omitempty"`
	Leader        string       `json:"leader,omitempty"`
	LeaderAddress string       `json:"leader_address,omitempty"`
	Reason        string       `json:"reason,omitempty"`
}

// nodeEvents writes the events of a node.
type nodeEvents struct {
	out            io.Writer
	asJSON         bool
	election, node string
}

// tell writes the status, and each new one, until ctx ends. Statuses that follow one
// another faster than they can be written are skipped.
func (e nodeEvents) tell(ctx context.Context, watch *elector.Watch) error {
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // it was told to end
		}
		event := nodeEvent{Event: "status", Role: s.Role().String()}
		if key, token, ok := s.Own(); ok {
			event.Key, event.Token = key, token
		} else if l, ok := s.Leader(); ok {
			event.Key, event.Token, event.Leader, event.LeaderAddress = l.Key, l.Token, l.NodeID, l.Address
		} else if s.Reason() != nil {
			event.Reason = connect.Because(s.Reason())
		}
		if err := e.write(s.Since(), event); err != nil {
			return err
		}
	}
}

// write writes one line in one piece. at is the time of the event, not of the line.
func (e nodeEvents) write(at time.Time, event nodeEvent) error {
	event.Time, event.Election, event.Node = at.Format(time.RFC3339Nano), e.election, e.node
	line := eventLine(at, event.Event, "", event.Role, "at", cli.Printable(event.Address), "", cli.Printable(event.Leader),
		"at", cli.Printable(event.LeaderAddress), "because", event.Reason, "token", event.Token)
	if e.asJSON {
		line = cli.JSONLine(event)
	}
	if _, err := io.WriteString(e.out, line); err != nil {
		return fmt.Errorf("writing the events: %w", err)
	}
	return nil
}
