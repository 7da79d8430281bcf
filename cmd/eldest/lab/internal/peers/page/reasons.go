package page

import (
	"fmt"
	"strings"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// The names of the other systems that reasons are about.
const (
	concurrency = contender.Concurrency
	clientGo    = "client-go"
	zookeeper   = "zookeeper"
	nats        = "nats"
	redis       = "redis"
	redlock     = "redlock"
	postgres    = "postgres"
	raft        = "raft"
)

// A ground is what a reason is about: a column, and the settings or the system, "" for all.
type ground struct{ column, of string }

// costs say what Eldest pays in a column, by the settings.
//
// Sources: docs/benchmarks.md, docs/benchmarks/details.md, docs/operations/sizing.md, and the decisions 13,
// 15, 26, 28 and 29. An entry that is not about a cost, such as one for rounds with two leaders, must not be
// here: it would excuse a fault.
var costs = map[ground]string{
	{"handover", ""}:                      "A resignation is a deletion that a majority of etcd's members stores. After its event the successor proves its win with one read, because the event does not show that its own key still exists; in docs/benchmarks.md, a put and such a read took 1.33 to 1.38 times as long as the put (decision 13).",
	{"crash", peer.Defaults}:              "By default the next candidate leads when the lease has expired. A keeper, which revokes the lease milliseconds after the process has ended, is one more process and is off by default.",
	{"crash", peer.Shortest}:              "The keeper, a second process, detects that the leader's process has ended, and revokes the lease, which is a write that a majority of etcd's members stores; then the successor proves its win with a read.",
	{"machine", peer.Defaults}:            "By default the next candidate leads when the lease has expired. Heartbeats, which need half a second or more, are off by default: they are writes, and they suspend the leader whenever etcd does not answer for that long.",
	{"machine", peer.Shortest}:            "The timeout of heartbeats is 500 ms at least, because with a shorter one a leader is suspended at each short delay of etcd. The keeper does not help, because it fails with the machine.",
	{"rest/requests", peer.Defaults}:      "A session renews its lease at each quarter of the TTL. After each renewal it sends a request to a majority of etcd's members, because a member that led etcd before confirms renewals by itself (decision 15).",
	{"rest/requests", peer.Shortest}:      "Heartbeats are four requests in each timeout. In addition each session renews its lease at each quarter of the TTL, with a request to a majority after each renewal (decision 15).",
	{"rest/writes", peer.Shortest}:        "Each heartbeat is a write to etcd, four in each timeout: 480 a minute with 500 ms (decision 29). Without heartbeats there are none.",
	{"memory", ""}:                        "A waiting candidate has two watches: one of its predecessor's key, and one of its own, by which it is notified at once when that is deleted.",
	{"memory", peer.Shortest}:             "With heartbeats it has a third watch, of its predecessor's heartbeats, with two goroutines and a timer, and one more timer for heartbeats of its own.",
	{"fanout", ""}:                        "The change is a deletion that a majority of etcd's members stores. The observers of a process share one watch, and are notified after its event, one goroutine each.",
	{"join", ""}:                          "Each candidate gets a place in the queue: a key, which a majority of etcd's members stores.",
	{"store-leader/unavailable", ""}:      "The other members of etcd elect a leader after their election timeout, a random time of 1 to 2 s with etcd's defaults. It is a setting of the servers, not of Eldest.",
	{"store-leader/moved", peer.Shortest}: "A TTL below four election timeouts of etcd can end before a renewal reaches etcd's new leader; then the session ends (docs/operations/sizing.md, the TTL).",
}

// gains say what the best system does otherwise, by the system.
var gains = map[ground]string{
	{"handover", concurrency}: "etcd's package sends the same deletion and one read. Eldest ends the tenure's context before, and its deletion names the tenure; in docs/benchmarks.md that took 0.2 ms more.",
	{"handover", zookeeper}:   "The steps in ZooKeeper are the same: a deletion, an event, a read that one server answers. The difference is in the servers and the clients.",
	{"handover", nats}:        "The steps are a deletion, an event and a write of the successor's key, by which it knows that it leads. The difference is in the servers and the clients.",
	{"handover", redis}:       "One server holds the lock in memory, so a release waits for no other server.",
	{"handover", redlock}:     "Each of the independent servers holds the lock in memory, so a release waits for no replication.",
	{"handover", postgres}:    "One server holds the lock in shared memory, and gives it to the next session that waits: no replication and no read afterwards.",
	{"rest/requests", raft}:   "The voters send heartbeats to each other, and nothing else.",
	{"rest/writes", raft}:     "Heartbeats of voters are not written.",
	{"handover", raft}:        "The leader tells one other voter to start an election at once; the processes are connected to each other, and no other system is between them.",

	{"crash", postgres}:      "The kernel closes the connection of a process that has ended, and the server releases the lock at once: no lease and no replication.",
	{"crash", concurrency}:   "Both wait for the end of the lease. etcd's package renews at each third of the TTL and Eldest at each quarter, so more of Eldest's lease remains when the leader fails.",
	{"crash", raft}:          "The voters send heartbeats to each other and start an election when these are missing; no lease of another system must expire.",
	{"machine", redis}:       "A lock in Redis may expire after any time, and is extended each third of it; the other candidates try to get it every 50 to 250 ms.",
	{"machine", redlock}:     "A lock in Redis may expire after any time, and is extended each third of it; the other candidates try to get it every 50 to 250 ms.",
	{"machine", concurrency}: "Both wait for the end of the lease. etcd's package renews at each third of the TTL and Eldest at each quarter, so more of Eldest's lease remains when the leader fails.",
	{"machine", raft}:        "The voters send heartbeats to each other and start an election when these are missing; no lease of another system must expire.",

	{"rest/requests", concurrency}: "etcd's package renews its lease at each third of the TTL, which is 60 s by default, without a request to a majority.",
	{"rest/requests", zookeeper}:   "A client of ZooKeeper sends one ping in each third of the session timeout.",
	{"rest/requests", postgres}:    "A session that holds a lock or waits for it is an open connection. Only the program's own checks are sent.",
	{"rest/requests", redis}:       "Requests extend the lock or try to get it, and nothing is watched or proved.",
	{"rest/requests", redlock}:     "Requests extend the lock or try to get it, and nothing is watched or proved.",
	{"rest/requests", clientGo}:    "The holder updates one record in each retry period, and a waiting candidate reads it.",
	{"rest/requests", nats}:        "The leader updates one key, and the other candidates receive that from the server.",

	{"rest/writes", concurrency}: "Renewals of leases are not written.",
	{"rest/writes", zookeeper}:   "Pings of sessions are not written.",
	{"rest/writes", postgres}:    "Advisory locks are in shared memory only.",

	{"memory", concurrency}: "A waiting candidate of etcd's package has one watch, of its predecessor's key.",
	{"memory", clientGo}:    "A waiting candidate polls: it is a goroutine with a timer, and no key or watch belongs to it.",
	{"memory", redis}:       "A waiting candidate polls: it is a goroutine with a timer, and no key or watch belongs to it.",
	{"memory", redlock}:     "A waiting candidate polls: it is a goroutine with a timer, and no key or watch belongs to it.",
	{"memory", postgres}:    "A waiting candidate is a connection, whose memory is the server's: a process of several MB, which is not counted.",
	{"memory", nats}:        "A waiting candidate has no key of its own.",
	{"memory", zookeeper}:   "A waiting candidate has one watch, of its predecessor's node, which is an entry in a table of the connection.",

	{"fanout", zookeeper}: "The watches of one client share a connection, and one event of the server wakes all of them.",

	{"join", concurrency}: "etcd's package writes such a key too, and reads the older candidates afterwards. For some hundred candidates that is faster, because members answer reads in parallel; for thousands it is slower (docs/benchmarks/details.md, joining).",
	{"join", zookeeper}:   "ZooKeeper stores a node for each candidate too. Its client sends requests without waiting for the answers to earlier ones, and the servers store many of them together.",
	{"join", clientGo}:    "There is no queue: a first try that fails is one read, and nothing is stored for a candidate.",
	{"join", redis}:       "There is no queue: a first try that fails is one request to one server, and nothing is stored for a candidate.",
	{"join", redlock}:     "There is no queue: a first try that fails is one request to each server, and nothing is stored for a candidate.",
	{"join", nats}:        "There is no queue: a first try that fails is one request, and nothing is stored for a candidate.",
	{"join", postgres}:    "A waiting session is an entry in the shared memory of one server, and nothing is stored.",

	{"store-leader/unavailable", concurrency}: "Its store is the same etcd. The difference is that of the random election timeouts.",
	{"store-leader/unavailable", clientGo}:    "Its store is the same etcd. The difference is that of the random election timeouts.",
	{"store-leader/unavailable", zookeeper}:   "Servers of ZooKeeper start an election as soon as the connection to their leader is closed.",
}

// onDisk says what the best system does otherwise if the data of the servers is on a disk. In memory it costs
// nothing to write to the disk first.
var onDisk = map[ground]string{
	{"handover", nats}:     "It acknowledges a write before that is on the disk (sync_interval, two minutes by default); etcd does not.",
	{"handover", redis}:    "No lock is on the disk before it is acknowledged.",
	{"handover", redlock}:  "No lock is on the disk before it is acknowledged.",
	{"handover", postgres}: "The lock is not on the disk.",
	{"handover", raft}:     "Its log is not on the disk.",
}

// reason explains why Eldest's cell is not the best of its column. A cell without a figure, or with rounds
// that failed, is never explained by a cost: only a scenario that Eldest does not have is a reason.
func reason(r *peers.Report, c column, setting string, mine *cell, best []row) string {
	if mine.State == lacking {
		return strings.Join(mine.Reasons, "; ")
	}
	if mine.State != measured || mine.unfinished {
		return strings.Join(append(unique(mine.Reasons), unknown), "; ")
	}
	var reasons []string
	add := func(system, text string) {
		if text != "" {
			reasons = append(reasons, title(r, system)+": "+text)
		}
	}
	add(ours, costs[ground{c.Key, ""}])
	add(ours, costs[ground{c.Key, setting}])
	for _, b := range best {
		reasons = append(reasons, sooner(r, c, setting, b.System))
		add(b.System, gains[ground{c.Key, b.System}])
		if !inMemory(r) {
			add(b.System, onDisk[ground{c.Key, b.System}])
		}
	}
	if known := unique(reasons); len(known) > 0 {
		return strings.Join(known, " ")
	}
	return unknown
}

// sooner says that a system detects a failure sooner by its settings, "" if it does not.
func sooner(r *peers.Report, c column, setting, system string) string {
	if c.Key != "crash" && c.Key != "machine" {
		return ""
	}
	its, mine := loss(r, system, setting), loss(r, ours, setting)
	if its == 0 || mine <= its {
		return ""
	}
	return fmt.Sprintf("%s notices a failure within %s by its settings, Eldest within %s.", title(r, system), span(its), span(mine))
}
