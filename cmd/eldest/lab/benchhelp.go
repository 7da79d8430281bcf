package lab

import (
	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// benchHelp is what all that measure have in common.
const benchHelp = `
Without --endpoints it measures on a cluster of its own: --members processes of this
executable, with etcd's own defaults. Their data is kept in memory unless --data says
otherwise, waits for the disk as etcd always does, and is removed at the end.

With --endpoints it measures on that cluster, which may be remote. It writes keys that
begin with "eldest-bench-" or "/eldest/newest/eldest-bench-", followed by random digits, and leases for them, and removes
both; it touches no others. The load is what the scenario says: hundreds to thousands of
small requests a second, with --size up to that many leases and watches. That is no load
for a cluster that others need at that moment, so endpoints are taken from the flag and
never from the environment; the other connection flags are, as everywhere.

The first Ctrl-C, SIGTERM or SIGHUP ends it: it tidies up, which takes some seconds, and
reports what it has. A second one, or kill -9, ends it at once; then keys are left in the
cluster of --endpoints until their leases run out, five minutes at most. Our own cluster
and all processes are gone in any case.

With default flags a scenario takes some minutes; what is shown meanwhile, on a terminal or
with --progress, says how many are left. --json writes one object with all samples, of
several runs {"runs": [...]}; --html writes one page that needs no network.

Exit codes: 0 done, and turns that failed are in the table; 1 all turns of a contender
failed at one point, or the run broke; 2 bad usage; 130 interrupted: what was measured
until then is written, and marked incomplete.
`

// wordsHelp explains the words in a scenario's results.
func wordsHelp(s bench.Scenario) string {
	var text string
	for _, part := range []struct {
		title string
		terms []bench.Term
	}{{"Regimes", s.Regimes}, {"Metrics", s.Metrics}} {
		if len(part.terms) > 0 {
			text += "\n" + part.title + ":\n" + figures.Glossary(part.terms, "  ") + "\n"
		}
	}
	return text
}
