package demo

import (
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/internal/story"
)

// The exit codes of "eldest campaign" that the demo relies on, and -1 for a process
// that a signal ended.
const (
	codeLeft   = 0
	codeLost   = 3
	codeKilled = -1
)

// checkExits: every process says how it ended.
func checkExits(facts []Fact) story.Verdict {
	var problems []string
	ended := 0
	// The last thing that each actor's process was through.
	want := make(map[string]int)
	why := make(map[string]string)
	for _, f := range facts {
		switch f.Kind {
		case Registered:
			want[f.Actor], why[f.Actor] = codeLeft, "it was asked to leave"
		case Lost:
			want[f.Actor], why[f.Actor] = codeLost, "it lost its session or its key"
		case Acted:
			if f.Act == Kill {
				want[f.Actor], why[f.Actor] = codeKilled, "it was killed"
			}
		case Exited:
			ended++
			if f.Code != want[f.Actor] {
				problems = append(problems, fmt.Sprintf("%s ended with %d, not %d, when %s", f.Actor, f.Code, want[f.Actor], why[f.Actor]))
			}
		}
	}
	return story.Judge("processes end as they should", ended, problems, "%s", story.Count(ended, "process"))
}

// checkLeft: the last candidate leaves nothing in etcd (G8).
func checkLeft(facts []Fact) story.Verdict {
	var problems []string
	looked := 0
	for _, f := range facts {
		if f.Kind != Left {
			continue
		}
		looked++
		if f.Keys > 0 || f.Leases > 0 {
			problems = append(problems, fmt.Sprintf("%s and %s stayed in etcd", story.Count(f.Keys, "key"), story.Count(f.Leases, "lease")))
		}
	}
	return story.Judge("nothing is left in etcd", looked, problems, "no key and no lease after the last candidate went")
}
