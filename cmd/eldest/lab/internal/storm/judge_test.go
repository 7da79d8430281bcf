package storm_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// The names of the storm's own verdicts.
const (
	promises   = "no promise to a caller is broken"
	enough     = "enough was called and answered"
	everyFault = "every fault took effect"
	orderly    = "nodes end and lead as they should"
)

// judge judges the storm, and also returns the counts of the calls, as text.
func (s *storm) judge(lasted time.Duration, faulty bool, changes []service.Change) (verdicts []story.Verdict, counts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	classes := make(map[string]map[string]int) // by kind
	broken := make(map[string][]*call)
	for _, c := range s.calls {
		class, wrong := c.class(s.begun[c.id], s.outage(c))
		if wrong != "" {
			class = "WRONG: " + wrong
			reason := wrong + ": " + plain(c.text)
			broken[reason] = append(broken[reason], c)
		}
		kind := c.kind
		if c.greedy {
			kind = "greedy, " + kind
		}
		if classes[kind] == nil {
			classes[kind] = make(map[string]int)
		}
		classes[kind][class]++
	}
	for _, kind := range slices.Sorted(maps.Keys(classes)) {
		for _, class := range slices.Sorted(maps.Keys(classes[kind])) {
			counts = append(counts, fmt.Sprintf("%-26s %-40s %7d", kind, class, classes[kind][class]))
		}
	}
	verdicts = append(service.AuditAttempts(s.attempts, changes),
		story.Judge(promises, len(s.calls), told(broken), "%s", story.Count(len(s.calls), "call")),
		s.judgeEnough(lasted),
		story.Judge(orderly, len(s.processes), s.problems, "%s, %s", story.Count(len(s.processes), "process"), story.Count(len(s.leaders), "tenure")),
	)
	if faulty {
		var missing, done []string
		for _, f := range faults[:6] {
			done = append(done, fmt.Sprintf("%s %d", f, s.effects[f]))
			if s.effects[f] == 0 {
				missing = append(missing, "INVALID: there was no "+string(f))
			}
		}
		verdicts = append(verdicts, story.Judge(everyFault, len(done), missing, "%s", strings.Join(done, ", ")))
	}
	return verdicts, counts
}

// judgeEnough checks that calls of each kind were made and answered all the time, on each route,
// and that writes were acknowledged through followers and by leaders themselves.
func (s *storm) judgeEnough(lasted time.Duration) story.Verdict {
	answered := make(map[string]int)
	for _, kind := range []string{"put", "append", "get", "list", "stream", "late upload"} {
		answered[kind] = 0
	}
	for _, kind := range []string{"stalled reader", "stalled handler", "stalled upload", "large message", "one of a crowd"} {
		answered["greedy, "+kind] = 0
	}
	for _, c := range s.calls {
		switch {
		case c.greedy && (c.code == codes.DeadlineExceeded || c.code == codes.OK || c.code == codes.InvalidArgument || c.code == codes.NotFound):
			answered["greedy, "+c.kind]++
		case !c.greedy && (c.code == codes.OK || c.code == codes.NotFound):
			answered[c.kind]++
		}
	}
	writes := 0
	const through, itself = "writes through a follower", "writes by the leader itself"
	answered[through], answered[itself] = 0, 0
	for _, a := range s.attempts {
		if a.Outcome != service.Done || a.Token == 0 {
			continue
		}
		answered["writes by "+a.Node]++
		switch writes++; {
		case strings.HasPrefix(a.Node, "resolver"):
		case s.leaders[int64(a.Token)] == a.Node:
			answered[itself]++
		default:
			answered[through]++
		}
	}
	var problems, rates []string
	for _, what := range slices.Sorted(maps.Keys(answered)) {
		rate := float64(answered[what]) / lasted.Seconds()
		rates = append(rates, fmt.Sprintf("%s %.1f", what, rate))
		if rate < 0.2 {
			problems = append(problems, fmt.Sprintf("INVALID: only %d of %q", answered[what], what))
		}
	}
	return story.Judge(enough, writes, problems, "a second: %s", strings.Join(rates, ", "))
}

// plain removes from a text what differs from call to call.
func plain(text string) string {
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "ADDRESS")
	text = regexp.MustCompile(`\bn\d\b`).ReplaceAllString(text, "N")
	text = regexp.MustCompile(`shop/[0-9a-f]+|lease [0-9a-f]+`).ReplaceAllString(text, "KEY")
	return regexp.MustCompile(`\b\d+\b`).ReplaceAllString(text, "0")
}

// told formats the broken guarantees: the most frequent first, each with its first call.
func told(broken map[string][]*call) (problems []string) {
	reasons := slices.SortedFunc(maps.Keys(broken), func(a, b string) int { return len(broken[b]) - len(broken[a]) })
	for _, reason := range reasons {
		calls, kinds := broken[reason], make(map[string]int)
		for _, c := range calls {
			kinds[c.kind]++
		}
		first := calls[0]
		problems = append(problems, fmt.Sprintf("%s, of %v: %s; the first: %s at %s, after %v of %v",
			story.Count(len(calls), "call"), kinds, reason, first.id, first.node, first.at.Sub(first.begin).Round(time.Millisecond), first.limit))
	}
	return problems
}
