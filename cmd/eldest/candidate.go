package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// candidateFlags are the flags of the commands that are candidates: campaign, run, service node.
type candidateFlags struct {
	conn       *connect.Flags
	http       string // where package httpstatus serves
	ttl        time.Duration
	heartbeat  time.Duration // 0: none
	noTransfer bool
	keeper     bool // not for "eldest run", which has a keeper of its own
}

// addCandidateFlags adds the flags to a command.
func addCandidateFlags(cmd *cobra.Command) *candidateFlags {
	f := &candidateFlags{conn: connect.AddFlags(cmd)}
	fl := cmd.Flags()
	fl.StringVar(&f.http, "http", "", "serve metrics and health on PORT or HOST:PORT")
	cli.TTLVar(fl, &f.ttl, lease.DefaultTTL, "lease TTL, rounded up to seconds; 0s: the default")
	fl.DurationVar(&f.heartbeat, "heartbeat", 0, "replace a leader after this time without a heartbeat; 0s: off")
	fl.BoolVar(&f.noTransfer, "no-transfer", false, "receive no requests of eldest transfer to requeue or to drain")
	return f
}

func (f *candidateFlags) addKeeper(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.keeper, "keeper", false, "a second process revokes the lease if this one dies (Linux 5.3)")
}

// candidateHelp is about the flags of candidates; the pages docs/operations/sizing.md, docs/transfer.md
// and docs/observability/README.md have the rest.
const candidateHelp = `
With --heartbeat (500ms or more) a leader is replaced after that time without a heartbeat, and not
only when its lease expires; these are writes: have etcd compact. --http serves /metrics, /healthz
(503 without a session) and /leader (503 unless it leads), without TLS; PORT alone on 127.0.0.1.
`

// check refuses arguments that are invalid in every election. called is the value's name in errors.
func (f *candidateFlags) check(name, value, called string) error {
	switch err := keys.Check(name); {
	case err != nil:
		return cli.Exit(cli.ExitUsage, err)
	case f.ttl < 0 || f.ttl > lease.MaxTTL:
		return cli.Usagef("--ttl %v: want 0s, the default, or more, and at most %v", f.ttl, lease.MaxTTL)
	case f.session().Check() != nil:
		return cli.Usagef("--heartbeat %v: want at least %v and less than --ttl, %v; 0s disables heartbeats", f.heartbeat, lease.MinHeartbeat, f.ttl)
	case len(value) > election.MaxValue:
		return cli.Usagef("%s has %d bytes, at most %d are allowed", called, len(value), election.MaxValue)
	}
	return nil
}

// session returns the session options that the flags specify.
func (f *candidateFlags) session() lease.Options {
	return lease.Options{TTL: f.ttl, Heartbeat: lease.Heartbeat{Timeout: f.heartbeat}}
}

// participant is a command that takes part in an election until a signal ends it.
type participant struct {
	*candidateFlags
	name   string // of the election
	client *clientv3.Client
	keeper *keeper.Keeper // nil without --keeper
	status *httpstatus.Status
	wait   *connect.Notice
	// fail ends the command with the given reason.
	fail context.CancelCauseFunc
}

// participate calls take, which takes part in the election until its ctx ends or it fails for good.
// It returns the command's result: a loss takes precedence over a signal, for the caller must see it.
func (f *candidateFlags) participate(cmd *cobra.Command, name string, take func(ctx context.Context, p participant) error) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not end the process while its key is in the queue
	status, err := f.serve(cmd, name, cli.ToStderr(cmd))
	if err != nil {
		return err
	}
	defer status.Close()
	notices := cli.NewNotices(cmd)
	defer notices.Close(cli.LastLines)
	p := participant{candidateFlags: f, name: name, status: status, wait: &connect.Notice{Conn: f.conn, Say: notices.Say}, fail: cancel}
	err = p.connected(ctx, take)
	switch {
	case lost(err):
		return cli.Exit(cli.ExitLost, errors.New(connect.Because(err)))
	case cmd.Context().Err() != nil && !errors.Is(err, eldest.ErrStuck):
		return nil // the normal end, by a signal
	case ctx.Err() != nil && cmd.Context().Err() == nil:
		return context.Cause(ctx)
	}
	return f.conn.Explain(ctx, err)
}

// connected calls take with a client and, with --keeper, a keeper.
func (p participant) connected(ctx context.Context, take func(context.Context, participant) error) (err error) {
	if p.client, err = p.conn.DialPatiently(ctx, p.wait); err != nil {
		return err
	}
	defer func() { _ = p.client.Close() }()
	if err := p.status.Observe(p.client); err != nil {
		return err
	}
	if !p.candidateFlags.keeper {
		return take(ctx, p)
	}
	with, err := json.Marshal(p.conn)
	if err == nil {
		p.keeper, err = keeper.Start(ctx, with)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return cli.Usagef("--keeper is not supported here: %w", err)
	case err != nil:
		return fmt.Errorf("--keeper: %w", err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-p.keeper.Done()
		if err := p.keeper.Err(); err != nil {
			p.wait.Say(fmt.Sprintf("%v; if this process dies, its lease expires as without --keeper", err))
		}
	}()
	defer func() {
		late, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.keeper.Close(late)
		<-over
	}()
	return take(ctx, p)
}

// serve resolves the connection flags and starts to serve what --http asks for, before anything is
// sent to etcd. It calls say with the address. The caller closes the status.
func (f *candidateFlags) serve(cmd *cobra.Command, name string, say func(string)) (*httpstatus.Status, error) {
	if err := f.conn.Resolve(cmd); err != nil {
		return nil, err
	}
	status := httpstatus.New(name, httpstatus.Grace(f.ttl))
	if cmd.Flags().Changed("http") {
		listener, err := httpstatus.Listen(f.http)
		if err != nil {
			return nil, cli.Usagef("--http %q: %w", f.http, err)
		}
		status.Serve(listener)
		say(fmt.Sprintf("serving http://%s/metrics, /healthz and /leader", listener.Addr()))
	}
	return status, nil
}

// candidacy is a session with a candidate.
type candidacy struct {
	*lease.Session
	candidate *election.Candidate
	stop      func() // ends the participation in transfers
}

// open opens a session with the options and creates its candidate, whose status shown publishes and which
// takes part in transfers unless --no-transfer is given. The caller closes the candidacy.
func (f *candidateFlags) open(ctx context.Context, client *clientv3.Client, value string, options lease.Options, events *eventLog, shown *httpstatus.Status) (*candidacy, error) {
	told := hooks.Tee(events.hooks(ctx), shown.Hooks())
	options.Hooks = hooks.Tee(options.Hooks, told.Session)
	// Lease is the client itself, not a part of it, so that the session can make it reconnect.
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: options})
	if err != nil {
		return nil, err
	}
	c := &candidacy{Session: session, stop: func() {}}
	events.begin(keys.Candidate(events.election, int64(session.ID())), int64(session.ID()))
	c.candidate, err = election.New(election.Config{
		Election: events.election, Session: session, KV: client, Watcher: client, Value: []byte(value),
		Options: election.Options{Hooks: told.Candidate},
	})
	if err != nil {
		return nil, errors.Join(err, c.close(ctx, f.conn.CommandTimeout, err))
	}
	shown.Candidate(session, c.candidate, value)
	if !f.noTransfer {
		c.stop = takePart(transfer.Config{Candidate: c.candidate, Session: session, KV: client, Watcher: client}, events)
	}
	return c, nil
}

// end is close, with a notice if etcd does not confirm in time; it waits until the last event is written.
func (c *candidacy) end(ctx context.Context, limit time.Duration, why error, events *eventLog) {
	unconfirmed := c.close(ctx, limit, why)
	events.awaitEnd(cli.LastLines)
	if unconfirmed != nil {
		events.notice("%v", unconfirmed)
	}
}

// close removes the key and revokes the lease, within the limit. If etcd does not confirm that in
// time, it returns an error for people; etcd removes the key when the lease expires.
func (c *candidacy) close(ctx context.Context, limit time.Duration, why error) error {
	defer c.stop()
	gone := errors.Is(why, eldest.ErrSessionLost)
	if gone {
		// etcd deletes the key with the lease, and usually cannot be reached now: waiting for it does
		// not help.
		limit = min(limit, time.Second)
	}
	// The command's context has usually ended, so leaving uses another one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	ttl := c.TTL()
	var err error
	if c.candidate != nil {
		err = c.candidate.Close(ctx)
	}
	if err = errors.Join(err, c.Close(ctx)); err == nil || gone {
		return nil
	}
	return fmt.Errorf("etcd did not confirm that the key is deleted; etcd deletes it at the latest %v after the last renewal", ttl)
}

// takePart serves transfer requests for a candidate until its session ends or stop is called, which
// waits. Close the session before calling stop: stop deletes the request key of a live session, and
// waits for etcd.
func takePart(cfg transfer.Config, events *eventLog) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := transfer.Serve(ctx, cfg)
		if ctx.Err() == nil && cfg.Session.Err() == nil && !errors.Is(err, eldest.ErrClosed) {
			events.notice("takes no part in transfers: %s", connect.Because(err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// lost reports whether a campaign or tenure ended from outside.
func lost(err error) bool {
	return errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrSessionLost)
}
