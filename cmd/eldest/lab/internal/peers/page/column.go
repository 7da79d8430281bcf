package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// A source is one metric of one scenario.
type source struct{ Scenario, Metric string }

func (s source) String() string { return s.Scenario + "/" + s.Metric }

// A column is one question of the table. In all of them less is better.
type column struct {
	// Key identifies the column in the table of reasons.
	Key string
	// Title is the header, Text says what was measured.
	Title, Text string
	// Sources are the metrics. Several are counted together.
	Sources []source
	// Rounds means that a sample above 0 is a round in which something happened, and that rounds are counted.
	Rounds bool
	// Sized means that the question has a size, which is N; Title has %N for it.
	Sized bool
	N     int
}

// questions are the columns, in their order.
var questions = []column{
	{Key: "handover", Title: "Hand-over", Sources: []source{{"handover", "win"}},
		Text: "The leader resigns: time until the next candidate leads."},
	{Key: "crash", Title: "Crash of the process", Sources: []source{{"crash", "win"}},
		Text: "The leader's process is killed with SIGKILL: time until the next candidate leads."},
	{Key: "machine", Title: "Failure of the machine", Sources: []source{{"machine", "win"}},
		Text: "The leader's process and all that guards it end without a packet, as if the machine lost its power: time until the next candidate leads."},
	{Key: "two-leaders", Title: "Two leaders, by belief", Rounds: true, Sources: []source{{"stop", "two-leaders"}, {"cut", "two-leaders"}},
		Text: "The leader's process is stopped and continued (stop), or its network is cut and healed (cut): rounds in which the client of the old leader reported that it leads after the next candidate had won."},
	{Key: "late-writes", Title: "Two leaders, by writes", Rounds: true, Sources: []source{{"stop", "late-writes"}, {"cut", "late-writes"}},
		Text: "The same rounds: those in which the store accepted an entry of the old leader after the first entry of the next leader."},
	{Key: "rest/requests", Title: "At rest: requests a minute", Sources: []source{{"rest", "requests"}},
		Text: "One leader and one waiting candidate, and nothing happens: writes to the sockets of their connections in a minute."},
	{Key: "rest/writes", Title: "At rest: writes a minute", Sources: []source{{"rest", "writes"}},
		Text: "The same minute: entries that the servers added to their logs or data."},
	{Key: "memory", Title: "Memory of a waiting candidate (%N in a process)", Sized: true, Sources: []source{{"memory", "bytes"}},
		Text: "Heap and stack of one process with so many waiting candidates, for each of them."},
	{Key: "fanout", Title: "Fan-out to %N observers", Sized: true, Sources: []source{{"fanout", "last"}},
		Text: "The leader changes: time until the last of so many observers in one process is notified."},
	{Key: "join", Title: "%N candidates join", Sized: true, Sources: []source{{"join", "all"}},
		Text: "So many candidates of one process campaign at once: time until all are queued or, where there is no queue, have tried once."},
	{Key: "store-leader/unavailable", Title: "The store's leader is killed: no writes for", Sources: []source{{"store-leader", "unavailable"}},
		Text: "The server that leads the store is killed with SIGKILL: time until the store accepts a write of the election's leader again."},
	{Key: "store-leader/moved", Title: "The same: the leadership moved", Rounds: true, Sources: []source{{"store-leader", "moved"}},
		Text: "The same rounds: those in which the election's leader changed, although it was healthy."},
}

// further explains the metrics that are in no column.
var further = map[string]string{
	"stop/win":  "The leader's process is stopped: time until the next candidate leads",
	"cut/win":   "The network of the leader's process is cut: time until the next candidate leads",
	"rest/sent": "At rest: bytes sent a minute",
}

// columns are the questions with the sizes of a report, one for each size.
func columns(r *peers.Report) (all []column) {
	for _, q := range questions {
		if !q.Sized {
			all = append(all, q)
			continue
		}
		sizes := map[int]bool{}
		for i := range r.Results {
			if x := &r.Results[i]; x.Scenario == q.Sources[0].Scenario && x.Metric == q.Sources[0].Metric {
				sizes[x.N] = true
			}
		}
		if len(sizes) == 0 {
			sizes[0] = true
		}
		for _, n := range sorted(sizes) {
			c := q
			c.N = n
			c.Title = strings.Replace(q.Title, "%N", cmp.Or(strings.TrimPrefix(story.Thousands(n), "0"), "all"), 1)
			all = append(all, c)
		}
	}
	return all
}

func sorted(set map[int]bool) (all []int) {
	for n := range set {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}
