package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

func newCampaignCmd() *cobra.Command {
	var f *candidateFlags
	cmd := &cobra.Command{
		Use:   "campaign ELECTION [VALUE]",
		Short: "Be a candidate, and lead until a signal ends it",
		Long: `Is a candidate in an election: it waits, leads, and goes on leading until SIGINT or SIGTERM ends it.
Then it resigns or, before the win, leaves the queue. A second signal ends the process at once; its
key then stays until the lease expires. VALUE is what other clients read about the candidate; the
default is host name and process ID. While etcd cannot be reached at the start it waits.

It prints one line per event: registered, waiting, leader, at-risk (a renewal failed), recovered,
requeued, drained, lost, resigned; with --heartbeat also suspended, resumed, and evicted (the
predecessor). With --json each is an object with event, time, election, key, token, lease, and where
they apply predecessor, queue, cause, led (requeued, lost, resigned) and remaining_ms (at-risk).
"resigned": leading or waiting has ended in this process. When the process ends, etcd has confirmed
the removal of the key, or a line on stderr reports that it has not. "requeued" is followed by a new
"registered"; "drained" (the leader was asked to give up leadership) by "resigned" and a new
"registered", behind all others.
` + candidateHelp + `
Exit codes: 0 after a signal; 1 failed; 2 bad usage; 3 leadership, the position in the queue or the
session was lost.
` + connect.Help,
		Example: `  eldest campaign nightly-jobs
  eldest campaign nightly-jobs "$(hostname -f):8080" --ttl 5s --json`,
		Args: cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			value := defaultValue()
			if len(args) == 2 {
				value = args[1]
			}
			if err := f.check(args[0], value, "VALUE"); err != nil {
				return err
			}
			return f.participate(cmd, args[0], func(ctx context.Context, p participant) error { return p.campaign(ctx, cmd, value) })
		},
	}
	f = addCandidateFlags(cmd)
	f.addKeeper(cmd)
	return cmd
}

// defaultValue returns a value by which people can distinguish candidates: host name and process ID.
func defaultValue() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// campaign campaigns and leads, and leaves at the end: when it returns, the key is removed and the
// last event is written, or stderr says why not. It returns nil if ctx ended a tenure, else why the
// campaign or the tenure ended.
func (p participant) campaign(ctx context.Context, cmd *cobra.Command, value string) error {
	events := &eventLog{asJSON: cli.WantsJSON(cmd), election: p.name, wait: p.wait}
	events.Lines = cli.WriteLines(cmd.OutOrStdout(), p.wait.Say, func(err error) {
		p.fail(fmt.Errorf("writing the events: %w", err))
	})
	defer events.Close(cli.LastLines)
	cfg := p.session()
	cfg.Keeper = p.keeper
	c, err := p.open(ctx, p.client, value, cfg, events, p.status)
	if err != nil {
		return err
	}
	err = c.lead(ctx, events)
	c.end(ctx, p.conn.CommandTimeout, err, events)
	if lost(err) { // the session can end before there is a candidate in the queue that reports it
		events.tell(event{Event: "lost", Cause: connect.Because(err), Led: new(false)})
	}
	return err
}

// lead campaigns and holds leadership. After a drain it campaigns again; after a suspension it waits
// until the win is proven again.
func (c *candidacy) lead(ctx context.Context, events *eventLog) error {
	leadership, err := c.candidate.Campaign(ctx)
	for {
		if err != nil {
			return err
		}
		select {
		case <-leadership.Done():
		case <-ctx.Done():
		}
		// Err is checked because select chooses at random when both channels are ready: a lost tenure
		// is reported as lost even if a signal came meanwhile.
		err = leadership.Err()
		suspended := errors.Is(err, eldest.ErrSuspended)
		if ctx.Err() != nil || !suspended && !errors.Is(err, eldest.ErrDraining) {
			return err
		}
		if suspended && !c.candidate.Status().Draining {
			leadership, err = c.candidate.Await(ctx)
			continue
		}
		// The event is written before "resigned" and without waiting for its reader, because no
		// candidate leads until the key is deleted.
		events.tell(event{Event: "drained", Cause: connect.Because(err)})
		// The result does not matter: if the key is not removed, the registration that follows finds
		// and removes it.
		_ = leadership.Resign(ctx)
		leadership, err = c.candidate.Campaign(ctx)
	}
}
