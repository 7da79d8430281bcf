package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

func newCampaignCmd() *cobra.Command {
	var f *standFlags
	cmd := &cobra.Command{
		Use:   "campaign ELECTION [VALUE]",
		Short: "Stand in an election and lead until a signal ends it",
		Long: `Stands in an election, waits, leads, and goes on leading until SIGINT or SIGTERM
ends it: then it resigns or, before the win, leaves the queue. A second signal ends
the process at once; its key then stays until the lease has run out. VALUE is what
others see of the candidate; the default is host name and process ID.

While etcd is away at the start it waits. It prints one line per event: registered,
waiting, leader, jeopardy (a renewal failed), recovered, stepped-back, retired, lost,
resigned; with --heartbeat also suspended, resumed, and evicted (the predecessor). With --json each is an object with event, time, election, key, token, lease,
and where they apply predecessor, queue, cause, led (stepped-back, lost, resigned) and
remaining_ms (jeopardy). "resigned" says that leading or waiting has ended here; the end
of the process, that etcd has confirmed the removal of the key, or a line on stderr says
it has not. "stepped-back" is followed by a new "registered". So is "retired" (it led,
and was asked to give that up), after "resigned": it stands again, behind all others.
` + heartbeatHelp + transferHelp + httpHelp + `
Exit codes: 0 after a signal; 1 failed; 2 bad usage; 3 leadership, the place in
the queue or the session was lost.
` + connect.Help,
		Example: `  eldest campaign nightly-jobs
  eldest campaign nightly-jobs "$(hostname -f):8080" --ttl 5s --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := defaultValue()
			if len(args) == 2 {
				value = args[1]
			}
			if err := f.check(args[0]); err != nil {
				return err
			}
			if len(value) > election.MaxValue {
				return cli.Usagef("VALUE has %d bytes, at most %d are allowed", len(value), election.MaxValue)
			}
			if err := f.conn.Resolve(cmd); err != nil {
				return err
			}
			shown, err := f.serve(cmd, args[0], cli.ToStderr(cmd))
			if err != nil {
				return err
			}
			defer shown.Close()
			return (&campaign{standFlags: f, cmd: cmd, face: shown, name: args[0], value: value}).run()
		},
	}
	f = addStandFlags(cmd, "candidate")
	f.addKeeperFlag(cmd)
	return cmd
}

// defaultValue tells candidates apart for people, without being configured.
func defaultValue() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// campaign is one run of the command.
type campaign struct {
	*standFlags // resolved; the session knows which TTL was granted

	cmd   *cobra.Command
	face  *face.Face // nil without --http
	name  string     // of the election
	value string     // what others see
	// events is where the lines go, errors where all else does; set by run.
	events *campaignEvents
	errors *cli.Notices
}

// run campaigns and leads. Whatever ends it, the key is removed and the last event
// is written before it returns, or stderr says why not.
func (c *campaign) run() error {
	ctx, cancel := context.WithCancelCause(c.cmd.Context())
	defer cancel(nil)
	// A reader that went away is no reason to die with the key in the queue.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	c.errors = cli.NewNotices(c.cmd)
	defer c.errors.Close(cli.LastLines)
	c.events = newCampaignEvents(c.cmd.OutOrStdout(), cli.WantsJSON(c.cmd), c.name, c.errors.Say, func(err error) {
		cancel(fmt.Errorf("writing the events: %w", err))
	})
	defer c.events.Close(cli.LastLines)

	client, err := c.dial(ctx, c.cmd, c.name, c.errors.Say)
	if err != nil {
		return c.result(ctx, err)
	}
	defer func() { _ = client.Close() }()

	kept, stopKeeper, err := c.startKeeper(ctx, c.errors.Say)
	if err != nil {
		return c.result(ctx, err)
	}
	defer stopKeeper()
	tell := teller(c.events.tell)
	told := hooks.Tee(c.face.Hooks(), hooks.Set{
		Session: tell.sessionHooks(c.conn.Why, c.errors.Sayf), Candidate: tell.candidateHooks(ctx, c.errors.Sayf),
	})
	session, err := c.open(ctx, client, kept, told.Session)
	if err != nil {
		return c.result(ctx, err)
	}
	c.events.stand(keys.Candidate(c.name, int64(session.ID())), int64(session.ID()))

	candidate, err := election.New(election.Config{
		Election: c.name, Session: session, KV: client, Watcher: client,
		Value: []byte(c.value), Hooks: told.Candidate,
	})
	if err == nil {
		c.face.Candidate(session, candidate, c.value)
		err = c.face.Observe(client)
	}
	stop := func() {}
	if err == nil && !c.noTransfer {
		stop = takePart(transfer.Config{Candidate: candidate, Session: session, KV: client, Watcher: client}, c.errors.Sayf)
	}
	if err == nil {
		err = c.lead(ctx, candidate)
	}
	unconfirmed := leave(c.cmd.Context(), c.conn.CommandTimeout, candidate, session, err)
	c.events.awaitEnd(cli.LastLines)
	if unconfirmed != nil {
		c.errors.Say(unconfirmed.Error())
	}
	stop()
	// A session can end before there is a candidate in the queue to tell of it.
	if lost(err) {
		c.events.lostBeforeStanding(err)
	}
	return c.result(ctx, err)
}

// open starts the session. It gets the client itself and not a part of it, so that it can
// have it connect anew, and knows whether it was closed.
func (c *campaign) open(ctx context.Context, client *clientv3.Client, kept *keeper.Keeper, told lease.Hooks) (*lease.Session, error) {
	cfg := c.session()
	cfg.Lease, cfg.Keeper, cfg.Hooks = client, kept, told
	return lease.Open(ctx, cfg)
}

// lead campaigns and holds what it has won; whenever it has retired it does so again, and
// whenever it is suspended it has the win proven anew. It returns nil when ctx ended a tenure, else
// why the campaign or the tenure ended.
func (c *campaign) lead(ctx context.Context, candidate *election.Candidate) error {
	leadership, err := candidate.Campaign(ctx)
	for {
		if err != nil {
			return err
		}
		select {
		case <-leadership.Done():
		case <-ctx.Done():
		}
		// Asked rather than taken from the select, which draws when both are over: a
		// tenure that was lost is lost, whatever was signalled meanwhile.
		err = leadership.Err()
		suspended := errors.Is(err, eldest.ErrSuspended)
		if ctx.Err() != nil || !suspended && !errors.Is(err, eldest.ErrRetired) {
			return err
		}
		if suspended && !candidate.Status().Retired {
			leadership, err = candidate.Await(ctx)
			continue
		}
		// Before "resigned", and without waiting for who reads it: nobody leads until the
		// key is gone.
		c.events.tell(time.Now(), campaignEvent{Event: "retired", Token: leadership.Token(), Cause: connect.Because(err)})
		// There is nothing to wait for here. A key that is not removed is met, and
		// removed, by the registration that follows.
		_ = leadership.Resign(ctx)
		leadership, err = candidate.Campaign(ctx)
	}
}

// leave removes the key and revokes the lease, within the limit. The error is what is to be
// told: what is not confirmed in time is, by then, for etcd to remove when the lease runs out.
func leave(ctx context.Context, limit time.Duration, candidate *election.Candidate, session *lease.Session, why error) error {
	gone := errors.Is(why, eldest.ErrSessionLost)
	if gone {
		// The key goes with the lease, and most often etcd cannot be reached:
		// nobody gains by waiting for it.
		limit = min(limit, time.Second)
	}
	// The command's context has ended, most often; leaving has one of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	ttl := session.TTL()
	var err error
	if candidate != nil {
		err = candidate.Close(ctx)
	}
	if err = errors.Join(err, session.Close(ctx)); err == nil || gone {
		return nil
	}
	return fmt.Errorf("etcd did not confirm that the key is gone; it will be, at the latest %v after the last renewal", ttl)
}

// result maps the end of the campaign to the command's. What was lost comes first:
// whoever runs the command must learn of it even if they were about to end it.
func (c *campaign) result(ctx context.Context, err error) error {
	switch {
	case lost(err):
		return cli.Exit(cli.ExitLost, errors.New(connect.Because(err)))
	case c.cmd.Context().Err() != nil:
		return nil //nolint:nilerr // by a signal, as it should
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return c.conn.Explain(ctx, err)
}

// lost reports whether a campaign or tenure ended from outside.
func lost(err error) bool {
	return errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrSessionLost)
}
