package lab

import (
	"strings"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// peersHelp is the help of "bench peers".
func peersHelp() string {
	var scenarios, metrics []bench.Term
	for _, s := range peers.Scenarios {
		scenarios = append(scenarios, bench.Term{Name: s.Name, Text: s.Summary})
		for _, m := range s.Metrics {
			metrics = append(metrics, bench.Term{Name: s.Name + "/" + m.Name, Text: m.Text, Better: m.Better})
		}
	}
	return `Measures leader elections of several systems side by side, in one run on this machine:
how long a leader is replaced, whether there were two leaders, and what an election costs.
Each system is measured with its usual client and the recipe that its community documents,
with its default settings and with the shortest failure detection that it documents.

It starts the servers of all systems, on 127.0.0.1 and with data in a temporary directory
(in memory, if there is such a file system), and ends and removes them. It needs Go: the clients
of all systems, and the servers of etcd, NATS and Raft, are a program of its own, which it
builds first. The other servers must be installed; a system that is not installed is skipped,
with the reason on stderr. If its servers do not start, all its rounds fail. On Debian:

  zookeeper    package zookeeper
  redis        package redis-server
  redlock      package redis-server
  postgres     package postgresql

As root it runs PostgreSQL, which refuses root, as the user postgres. The scenarios machine
and cut need Linux. A run of everything takes less than half an hour and 4 GB of memory, and
needs a machine that does nothing else; --rounds 1 --size 50 takes some minutes.

Systems: ` + strings.Join(peer.Names, ", ") + `

Scenarios:
` + figures.Glossary(scenarios, "  ") + `

Metrics:
` + figures.Glossary(metrics, "  ") + `

A round in which nobody leads within the limit, which depends on the system's settings and is
75 s at most, is counted as none: neither a sample nor an error.

The first Ctrl-C, SIGTERM or SIGHUP ends it: it ends all servers, which takes some seconds,
and reports the results so far. A second signal ends it at once; its processes
end with it, and the next run removes the data that it leaves.

Exit codes: 0 done (the table shows failed rounds); 1 all rounds of a system failed at one
point, no system could be started, or the run failed; 2 bad usage; 130 interrupted: the
measurements until then are written, and marked incomplete.
`
}
