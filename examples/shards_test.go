package examples_test

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each process leads its share, also after one has joined, was killed or was stopped; and no election ever has two
// leaders. Processes join and end in two tests at the same time, each with elections of its own.
func TestShards(t *testing.T) {
	t.Parallel()
	s := newStage(t, "shards")
	t.Run("processes join", func(t *testing.T) {
		t.Parallel()
		f := s.fleet(t, "joined")
		a := f.node("a")
		f.balanced(a)
		b := f.node("b")
		f.balanced(a, b)
		f.balanced(a, b, f.node("c"))
		f.end()
	})
	t.Run("processes end", func(t *testing.T) {
		t.Parallel()
		f := s.fleet(t, "ended")
		a, b, c := f.node("a"), f.node("b"), f.node("c")
		f.balanced(a, b, c)
		b.signal(syscall.SIGKILL)
		<-b.done
		f.balanced(a, c)
		a.signal(syscall.SIGTERM)
		a.ends(0)
		f.balanced(c)
		f.end()
	})
	t.Run("bad flags", func(t *testing.T) { s.start(t, "shards").ends(1) })
}

// fleet are the processes that campaign in the same elections.
type fleet struct {
	t      *testing.T
	stage  stage
	prefix string
	all    []*process
}

// elections is how many each fleet has: divisible by two and by three.
const elections = 300

func (s stage) fleet(t *testing.T, prefix string) *fleet {
	return &fleet{t: t, stage: s, prefix: prefix}
}

func (f *fleet) node(id string) *process {
	f.t.Helper()
	p := f.stage.start(f.t, "shards", "--node", id, "--prefix", f.prefix, "--shards", strconv.Itoa(elections),
		"--trail", "--endpoints", f.stage.endpoints, "--ttl", "4s")
	f.all = append(f.all, p)
	return p
}

// balanced waits until each of the nodes, which are all that run, leads its share. The share divides the number of
// elections, and all of them are led: so all shares are exact.
func (f *fleet) balanced(nodes ...*process) {
	f.t.Helper()
	for _, p := range nodes {
		p.until(fmt.Sprintf(`^\S+ leads (%d) of %d as one of %d$`, elections/len(nodes), elections, len(nodes)))
	}
}

// end stops the processes that run, and requires that no election had two leaders.
func (f *fleet) end() {
	t := f.t
	t.Helper()
	for _, p := range f.all {
		select {
		case <-p.done:
		default:
			p.signal(syscall.SIGTERM)
			p.ends(0)
		}
	}
	tenures := make(map[string][]tenure)
	for _, p := range f.all {
		for _, line := range p.said() {
			var mark, election string
			var token, at int64
			if _, err := fmt.Sscan(line, &mark, &election, &token, &at); err != nil || mark != "+" && mark != "-" {
				continue
			}
			of := tenures[election]
			if i := slices.IndexFunc(of, func(x tenure) bool { return x.token == token }); i >= 0 {
				of[i].ended = at
			} else {
				tenures[election] = append(of, tenure{token: token, began: at})
			}
		}
	}
	require.Len(t, tenures, elections)
	for election, of := range tenures {
		require.GreaterOrEqual(t, len(of), 1, election)
		slices.SortFunc(of, func(x, y tenure) int { return int(x.token - y.token) })
		for i, next := range of[1:] {
			// A tenure without an end is that of the process that was killed.
			require.Less(t, max(of[i].began, of[i].ended), next.began, "%s: two leaders, with tokens %d and %d", election, of[i].token, next.token)
		}
	}
}

// tenure is a tenure that a process has printed, in nanoseconds of the machine's clock.
type tenure struct{ token, began, ended int64 }
