package operate

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/transfer"
)

// ShouldYield is the decision of a node of a service that is about to lead (elector.Config.Priority).
// A node without a priority, and a candidate that is no node, never yields. It is for
// transfer.Options.
func ShouldYield(own eldest.Candidate, others []eldest.Candidate) bool {
	priority := func(value []byte) int {
		node, _ := NodeOf(value)
		return int(node.Priority)
	}
	return priority(own.Value) != 0 && election.ByPriority(priority)(own, others)
}

// Limit is how long a transfer may take: the sum of the limits of its steps. request is the limit of
// one request; the Timeout and Drain of options must be set.
func Limit(plan transfer.Plan, options transfer.Options, request time.Duration) time.Duration {
	return options.Drain + time.Duration(len(plan.Back)+2)*(options.Timeout+request)
}

// Advice returns what the user can do about the refusal of a transfer in the named election; "" if
// there is nothing.
func Advice(r *transfer.Refusal, name string) string {
	list := "eldest list " + cli.Printable(name)
	if r.Reason == transfer.NoAnswer && r.Unknown {
		return list + " shows the outcome"
	}
	return map[transfer.Reason]string{
		transfer.UnknownTarget:     list + " shows the candidates",
		transfer.LeaderTakesNoPart: "eldest evict " + cli.Printable(name) + " removes its key, and the next in line leads",
		transfer.Between:           "a transfer to the first in line does not need them; eldest evict can remove them from the queue",
		transfer.Behind:            "with --order pass-by they may pass the candidates that requeue",
		transfer.Outranked:         "a transfer to the node with the highest priority is possible (" + list + " shows priorities)",
		transfer.Busy:              "check the queue (" + list + ") and try again",
		transfer.Changed:           "check the queue (" + list + ") and try again",
		transfer.NoAnswer:          "its process may be stopped or partitioned, or it needs a longer --timeout",
	}[r.Reason]
}
