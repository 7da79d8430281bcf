package zookeeper

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// timing is one set of settings.
type timing struct {
	tick    time.Duration
	session time.Duration
	// init and sync are the ticks in which a follower must load the data of its leader, and answer it.
	init, sync int
}

var timings = map[string]timing{
	peer.Defaults: {tick: 2 * time.Second, session: 30 * time.Second, init: 10, sync: 5},
	// The time to load data has nothing to do with the failures of clients, so it is the same 20 s.
	peer.Shortest: {tick: 500 * time.Millisecond, session: time.Second, init: 40, sync: 5},
}

// System describes leader election by ZooKeeper's recipe.
func System() peer.System {
	return peer.System{
		Name:  "zookeeper",
		Title: "ZooKeeper",
		Recipe: "Each candidate creates an ephemeral sequential node and watches the node with the next lower number. " +
			"The candidate with the lowest number leads.",
		Links: []peer.Link{
			{Text: "ZooKeeper's recipe of leader election", URL: "https://zookeeper.apache.org/doc/r3.8.0/recipes.html#sc_leaderElection"},
			{Text: "sessions and their timeouts", URL: "https://zookeeper.apache.org/doc/r3.8.0/zookeeperProgrammers.html#ch_zkSessions"},
			{Text: "tickTime and the other settings of servers", URL: "https://zookeeper.apache.org/doc/r3.8.0/zookeeperAdmin.html#sc_configuration"},
			{Text: "Curator's advice about lost connections", URL: "https://curator.apache.org/docs/errors"},
		},
		Module: "github.com/go-zookeeper/zk",
		Guard: "The recipe has none. This program writes by a multi request, which fails unless the node of the leader " +
			"still exists.",
		Unfair: []string{
			"To its disadvantage: the servers run in Java virtual machines that have just been started, with a heap of at most 256 MB. A server in " +
				"production has run for longer and has more memory.",
			"To its disadvantage: when all servers refuse clients for an instant, as during a change of ZooKeeper's own leader, go-zookeeper waits one " +
				"second before it tries again: the store-leader scenario measures that second, not ZooKeeper's election.",
			"To its advantage: an observer watches the node of the leader; all observers of a " +
				"process share one session, for which a server keeps and sends a single watch. Its recipe has no observers.",
			"To its advantage: the guard is this program's: users of the recipe have none unless they add it.",
			"A server does not end a session when the connection of its client breaks, so a crashed process is noticed " +
				"no earlier than a dead machine.",
		},
		Settings: settings(),
		Start:    start,
		Dial:     dial,
	}
}

func settings() map[string]peer.Setting {
	disconnected := func(t timing) string {
		return fmt.Sprintf("a leader may not believe that it leads while it is disconnected (Curator's advice), which go-zookeeper "+
			"notices %v after the last message (two thirds of the session timeout)", (t.session * 2 / 3).Round(time.Millisecond))
	}
	rounding := func(t timing) string {
		return fmt.Sprintf("servers round the end of a session up to the next tick, so it may take %v longer", t.tick)
	}
	d, s := timings[peer.Defaults], timings[peer.Shortest]
	return map[string]peer.Setting{
		peer.Defaults: {
			Loss: d.session,
			Values: []string{
				fmt.Sprintf("tickTime %v, initLimit %d, syncLimit %d (ZooKeeper's sample configuration)", d.tick, d.init, d.sync),
				fmt.Sprintf("session timeout %v: the default of ZooKeeper's own zkCli.sh, chosen by this program because "+
					"go-zookeeper has no default; Curator's is 60 s, of which servers with this tickTime grant 40 s", d.session),
				rounding(d), disconnected(d),
			},
		},
		peer.Shortest: {
			Loss: s.session,
			Values: []string{
				fmt.Sprintf("session timeout %v: two ticks, the minimum that servers grant unless minSessionTimeout is set", s.session),
				fmt.Sprintf("tickTime %v, chosen by this program: the documentation has no lower limit", s.tick),
				fmt.Sprintf("initLimit %d (the same 20 s as in the sample configuration), syncLimit %d", s.init, s.sync),
				rounding(s), disconnected(s),
			},
		},
	}
}
