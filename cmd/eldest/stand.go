package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// standFlags are the flags of the commands that stand in an election.
type standFlags struct {
	conn *connect.Flags
	// http is where to serve what package face shows.
	http       string
	ttl        time.Duration
	heartbeat  time.Duration // 0: none
	noTransfer bool
	// keeper asks for a keeper; not for "eldest run", which has its own.
	keeper bool
}

// addStandFlags gives a command the flags; who is what its lease keeps in the queue.
func addStandFlags(cmd *cobra.Command, who string) *standFlags {
	f := &standFlags{conn: connect.AddFlags(cmd)}
	fl := cmd.Flags()
	fl.StringVar(&f.http, "http", "", "PORT or HOST:PORT where to serve /metrics, /healthz and /leader; port 0 is a free one (default: nowhere)")
	fl.DurationVar(&f.ttl, "ttl", lease.DefaultTTL,
		"time to live of the lease: how long etcd waits before a crashed "+who+" is out; rounded up to seconds")
	fl.DurationVar(&f.heartbeat, "heartbeat", 0,
		"time after which a "+who+" that leads and falls silent is replaced, machine and all, instead of --ttl; at least 500ms, 0s is without (see above for the costs)")
	fl.BoolVar(&f.noTransfer, "no-transfer", false, "take no part in transfers: nobody can ask this candidate to step back or to retire")
	return f
}

// addKeeperFlag gives a command --keeper.
func (f *standFlags) addKeeperFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.keeper, "keeper", false,
		"start a second process that revokes the lease as soon as this one has died (Linux 5.3)")
}

// check refuses what cannot stand in any election.
func (f *standFlags) check(election string) error {
	switch err := keys.Check(election); {
	case err != nil:
		return cli.Exit(cli.ExitUsage, err)
	case f.ttl <= 0 || f.ttl > lease.MaxTTL:
		return cli.Usagef("--ttl %v: want more than 0s and at most %v", f.ttl, lease.MaxTTL)
	case f.session().Check() != nil:
		return cli.Usagef("--heartbeat %v: want at least %v and less than --ttl, %v; 0s is without", f.heartbeat, lease.MinHeartbeat, f.ttl)
	}
	return nil
}

// session is what the flags say of sessions.
func (f *standFlags) session() lease.Config {
	return lease.Config{TTL: f.ttl, Heartbeat: lease.Heartbeat{Timeout: f.heartbeat}}
}

// startKeeper starts the keeper of the sessions; without --keeper it returns nil, which is none. Once no
// session is left stop ends it. say is told if it ends sooner, and must not block.
func (f *standFlags) startKeeper(ctx context.Context, say func(string)) (k *keeper.Keeper, stop func(), err error) {
	if !f.keeper {
		return nil, func() {}, nil
	}
	with, err := json.Marshal(f.conn)
	if err == nil {
		k, err = keeper.Start(ctx, with)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil, cli.Usagef("--keeper is not supported here: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("--keeper: %w", err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-k.Done()
		if err := k.Err(); err != nil {
			say(fmt.Sprintf("%v; if this process dies, its lease expires as without --keeper", err))
		}
	}()
	return k, func() {
		late, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = k.Close(late)
		<-over
	}, nil
}

// heartbeatHelp is what their --help says of --heartbeat.
const heartbeatHelp = `
With --heartbeat D the leader writes a key below /eldest/beat/ four times in D, and a
candidate that has --heartbeat, too, and waits behind it evicts it after D without one: if
its machine has died, say. A leader to which etcd confirms none in time, D less 150ms or a
tenth of D, is suspended, and leads on with the same token when etcd says that its key still
stands: whether etcd stood still, or only was slow. It costs 4/D revisions a second for each
leader: let etcd compact by itself (--auto-compaction-retention of etcd; whether it does
cannot be asked), or its database grows. Without the permission to write there the candidate
goes on without heartbeats, and stderr says so.
`

// httpHelp is what their --help says of it.
const httpHelp = `
With --http it serves /metrics for Prometheus, /healthz (200, or 503 once it has had no
living session for twice the TTL, and ten seconds at least) and /leader (200 while it
leads, else 503), without TLS. It says on stderr where; a port alone is on 127.0.0.1.
`

// serve begins to serve, before anything is sent to etcd, and says where; without --http it
// returns nil, of which all methods do nothing. The caller closes it.
func (f *standFlags) serve(cmd *cobra.Command, election string, say func(string)) (*face.Face, error) {
	if !cmd.Flags().Changed("http") {
		return nil, nil //nolint:nilnil // a face that does nothing
	}
	listener, err := face.Listen(f.http)
	if err != nil {
		return nil, cli.Usagef("--http %q: %w", f.http, err)
	}
	shown := face.Serve(listener, election, face.Grace(f.ttl))
	say(fmt.Sprintf("serving http://%s/metrics, /healthz and /leader", shown.Address()))
	return shown, nil
}

// dial connects to etcd, waits while it is away, and has the client say why an election makes
// no progress. say must not block.
func (f *standFlags) dial(ctx context.Context, cmd *cobra.Command, election string, say func(string), more ...grpc.DialOption) (*clientv3.Client, error) {
	wait := &connect.Notice{To: cmd, Conn: f.conn, Say: say}
	client, err := f.conn.DialPatiently(ctx, wait, more...)
	if err == nil {
		wait.Listen(client, election)
	}
	return client, err
}

// transferHelp is for the help text of the commands that stand in elections.
const transferHelp = `
It takes part in transfers (eldest transfer), and can so be asked to step back in the
queue or to give leadership up; --no-transfer has it take no part. It is asked through a
key of its own under /eldest/ask/ELECTION/: a user whose role does not reach there stands
and leads all the same, and stderr says that it takes no part.
`

// takePart lets a candidate be asked until its session ends or stop is called, which
// waits. Close the session first: stop deletes the mailbox of a session that lives, and
// waits for etcd.
func takePart(cfg transfer.Config, notice func(string, ...any)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := transfer.Serve(ctx, cfg)
		if ctx.Err() == nil && cfg.Session.Err() == nil && !errors.Is(err, eldest.ErrClosed) {
			notice("takes no part in transfers: %s", connect.Because(err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
