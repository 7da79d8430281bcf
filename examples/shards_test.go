package examples_test

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// shards: each process leads its share, also after one has joined, was killed or was stopped; and
// no election ever has two leaders.
func (s stage) shards(t *testing.T) {
	t.Parallel()
	const n = 300 // divisible by two and by three
	node := func(id string) *process {
		return s.start(t, "shards", "--node", id, "--shards", strconv.Itoa(n), "--trail", "--endpoints", s.endpoints, "--ttl", "4s")
	}
	// The share divides n, and all elections are led: so all shares are exact.
	balanced := func(nodes ...*process) {
		t.Helper()
		for _, p := range nodes {
			p.until(fmt.Sprintf(`^\S+ leads (%d) of %d as one of %d$`, n/len(nodes), n, len(nodes)))
		}
	}
	a := node("a")
	balanced(a)
	b := node("b")
	balanced(a, b)
	c := node("c")
	balanced(a, b, c)
	b.signal(syscall.SIGKILL)
	<-b.done
	balanced(a, c)
	a.signal(syscall.SIGTERM)
	a.ends(0)
	balanced(c)
	c.signal(syscall.SIGTERM)
	c.ends(0)

	tenures := make(map[string][]tenure)
	for _, p := range []*process{a, b, c} {
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
	require.Len(t, tenures, n)
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
