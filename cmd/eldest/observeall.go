package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/leasetime"
	"github.com/eldest-io/eldest/observe"
)

// observeAll prints an event for each change of the queue until the command's context ends, a write to
// stdout fails, or etcd returns a permanent error.
func observeAll(cmd *cobra.Command, conn *connect.Flags, client *clientv3.Client, cfg observe.Config) error {
	leases := leasetime.Track(client)
	defer leases.Close()
	events := queueEvents{observeEvents: observeEvents{name: cfg.Election, why: conn.Why}, leases: leases}
	for update, err := range observe.Changes(cmd.Context(), cfg) {
		if err != nil {
			return err
		}
		at := time.Now()
		for _, event := range events.of(cmd.Context(), update, at) {
			if err := event.print(cmd, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// queueEvents turns updates into events.
type queueEvents struct {
	observeEvents // of the leader
	leases        *leasetime.Tracker
	// begun means that the queue was reported.
	begun bool
}

// of returns the events of an update that was received at a time.
func (q *queueEvents) of(ctx context.Context, u observe.Update, at time.Time) (events []observeEvent) {
	add := func(name string, c eldest.Candidate) {
		shown := candidateForJSON(c)
		events = append(events, observeEvent{Event: name, Election: q.name, Revision: u.State.Revision, candidateJSON: &shown})
	}
	ends := q.leases.Ends(ctx, leasesOf(u.Left), at)
	for _, c := range u.Left {
		add(map[leasetime.End]string{leasetime.NotExpired: "left", leasetime.Expired: "expired", leasetime.Unclear: "deleted"}[ends[c.Lease]], c)
	}
	for _, c := range u.Changed {
		add("value", c)
	}
	entered := "registered"
	if !q.begun {
		entered = "queued"
	}
	q.leases.Add(leasesOf(u.Registered))
	for _, c := range u.Registered {
		add(entered, c)
	}
	q.begun = q.begun || u.State.Kind != eldest.Unknown
	if leader, told := q.next(u.State); told && leader.Event != "value" {
		events = append(events, leader)
	}
	for i := range events {
		if u.State.Kind != eldest.Unknown {
			events[i].Queue = &u.Queue
		}
	}
	return events
}

func leasesOf(candidates []eldest.Candidate) (leases []int64) {
	for _, c := range candidates {
		leases = append(leases, c.Lease)
	}
	return leases
}

// allHelp is the part of --help about --all.
const allHelp = `
With --all each change of the queue is one line, also if the leader stays: first the whole
queue, then each change in its order. These are printed as well:

  queued      the candidate was in the queue when the command began
  registered  the candidate has come
  value       the candidate, the leader or another one, has a new value
  left        its key was deleted before its lease could expire: it resigned, withdrew, was
              requeued or evicted, or its lease was revoked
  expired     its lease is over, and had less than a second left when etcd was last asked, at
              most two seconds before: it was not renewed
  deleted     its key was deleted, and whether its lease had expired is not known

etcd does not report why a key was deleted. So --all asks for the time left of each
candidate's lease, when half of the time of the last answer has passed, and for at most 20 in
a second. A candidate that leaves before the first answer is "deleted", and with more than
about 80 candidates whose TTL is 10s others are, too.
"expired" is wrong if a lease was renewed in its last second and revoked within the next two.
After "unknown", the changes since are printed, except candidates that came and left in
between. JSON objects have the field queue, the number of candidates after the change. etcd
sends each change of any candidate to each such command: do not run one beside each candidate.
`
