package raftpeer

import (
	"context"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// shortest is the heartbeat timeout, the election timeout and the leader lease of the shortest settings.
const shortest = 100 * time.Millisecond

// configuration is a voter's configuration with settings of that name.
func configuration(setting string) *raft.Config {
	c := raft.DefaultConfig()
	c.LogLevel = "OFF"
	if setting == peer.Shortest {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = shortest, shortest, shortest
	}
	return c
}

// loss is how long a follower waits at most before it becomes a candidate: a random time of one to two
// heartbeat timeouts.
func loss(setting string) time.Duration { return 2 * configuration(setting).HeartbeatTimeout }

// start starts the process of the extra voters. The other voters are participants. The version is that of the module:
// there is no other server.
func start(ctx context.Context, cfg peer.ServerConfig) (*peer.Servers, error) {
	ports, err := cfg.Fleet.Ports(1)
	if err != nil {
		return nil, err
	}
	control, caller := "127.0.0.1:"+strconv.Itoa(ports[0]), newCaller(direct{})
	const name = "the process of the extra voters"
	args := []string{"bench", "peers-server", "raft", cfg.Setting, control}
	if err := cfg.Fleet.Start(name, peer.Program{Path: cfg.Executable, Args: args, Dir: cfg.Dir}); err != nil {
		return nil, err
	}
	s := &peer.Servers{Version: "hashicorp/raft (version unknown)", Nodes: 3, Endpoints: []string{control}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				s.Version = "hashicorp/raft " + strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	s.Writes = func(ctx context.Context) (n int64, err error) {
		err = caller.call(ctx, control, writesPath, nil, &n)
		return n, err
	}
	return s, cfg.Fleet.Await(ctx, name, func(ctx context.Context) error {
		_, err := s.Writes(ctx)
		return err
	})
}

// module is the Go module.
const module = "github.com/hashicorp/raft"

// System is a Raft group of the participants.
func System() peer.System {
	everyVoter := "each candidate is a voter of the group, with a log: a group has three to seven"
	return peer.System{
		Name: "raft", Title: "hashicorp/raft",
		Recipe: "The participants are voters of a Raft group, and its leader is theirs; an extra voter makes three. A leader holds while raft.State reports so, which is what LeaderCh has told; it resigns by a transfer of the leadership.",
		Links: []peer.Link{
			{Text: "hashicorp/raft", URL: "https://pkg.go.dev/github.com/hashicorp/raft"},
			{Text: "Its configuration", URL: "https://pkg.go.dev/github.com/hashicorp/raft#Config"},
		},
		Module: module,
		Guard:  "Entries of a leader without a majority are not committed.",
		Unfair: []string{
			"To its advantage: its log is in memory, which its documentation forbids in production.",
			"To its advantage: there are no clients and no servers: a leader appends to its own log.",
			"To its disadvantage: the extra voter may win; it transfers the leadership to a participant at once, which takes a little longer.",
			"To its disadvantage, at rest: the participants' requests include the replication among the voters, which servers do in other systems.",
			"The candidates are the servers: each needs a log, and all know each other.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {Loss: loss(peer.Defaults), Values: []string{
				"heartbeat timeout 1 s, election timeout 1 s, leader lease 500 ms (raft.DefaultConfig)",
				"a follower becomes a candidate after one to two heartbeat timeouts",
			}},
			peer.Shortest: {Loss: loss(peer.Shortest), Values: []string{
				"heartbeat timeout, election timeout and leader lease 100 ms (our choice: raft accepts 5 ms, but with 50 ms leaders changed without a fault on the two busy processors)",
				"a follower becomes a candidate after one to two heartbeat timeouts",
			}},
		},
		Lacks: map[string]string{
			"fanout":       "only voters know the leader: " + everyVoter,
			"join":         everyVoter,
			"memory":       everyVoter,
			"store-leader": "the leader of the store is the leader: see crash",
		},
		Start: start,
		Dial:  dial,
	}
}
