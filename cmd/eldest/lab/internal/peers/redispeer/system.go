package redispeer

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// settings of redsync. Its default expiry is 8 s, and it documents neither a lower limit nor how often a
// lock should be extended.
var settings = map[string]time.Duration{
	peer.Defaults: 8 * time.Second,
	peer.Shortest: 500 * time.Millisecond,
}

// extensions is how many times a lock is extended before it would expire.
const extensions = 3

// Single is a lock in one server.
func Single() peer.System {
	s := system(1)
	s.Name, s.Title = "redis", "Redis"
	s.Recipe = "A lock with an expiry in one server (SET NX PX), by redsync. The leader extends it; the others try to lock every 50 to 250 ms, which is redsync's default."
	s.Guard = "A Lua script compares the lock's value and adds the entry. Programs must write it themselves: redsync has none."
	s.Lacks["store-leader"] = "there is one server: nothing takes over when it fails"
	s.Unfair = append(s.Unfair, "To its advantage: one server, no replication. With a replica and a fail-over, a lock can be lost.")
	return s
}

// Redlock is a lock in the majority of three independent servers.
func Redlock() peer.System {
	s := system(3)
	s.Name, s.Title = "redlock", "Redlock"
	s.Recipe = "A lock with an expiry in the majority of three independent servers, by redsync. The leader extends it; the others try to lock every 50 to 250 ms, which is redsync's default."
	s.Lacks["store-leader"] = "its servers have no leader, and it is no store"
	s.Unfair = append(s.Unfair,
		"To its disadvantage: it is a lock and no store. The log is a list in the third server, without a replica and without a guard, because no server knows what the majority holds.")
	return s
}

func system(nodes int) peer.System {
	return peer.System{
		Module: "github.com/go-redsync/redsync/v4",
		Links: []peer.Link{
			{Text: "redsync", URL: "https://github.com/go-redsync/redsync"},
			{Text: "Distributed locks with Redis", URL: "https://redis.io/docs/latest/develop/use/patterns/distributed-locks/"},
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {Loss: settings[peer.Defaults], Values: []string{
				"expiry 8 s (redsync's default)",
				"extended every 2.7 s (our choice: redsync documents no interval)",
				"tries every 50 to 250 ms (redsync's default)",
				"servers with Redis' default settings: snapshots, no append-only file",
			}},
			peer.Shortest: {Loss: settings[peer.Shortest], Values: []string{
				"expiry 500 ms (our choice: redsync documents no lower limit)",
				"extended every 167 ms (our choice)",
				"tries every 50 to 250 ms (redsync's default)",
				"servers with Redis' default settings: snapshots, no append-only file",
			}},
		},
		Unfair: []string{
			"To its advantage: nothing is written to a disk before it is acknowledged; a server that fails loses its locks.",
			"A candidate is not told that the lock is free: it tries again and again, at the cost of requests.",
			"To its disadvantage: it has no observers; here one polls at the intervals of a candidate that waits.",
		},
		Lacks: map[string]string{},
		Start: func(ctx context.Context, cfg peer.ServerConfig) (*peer.Servers, error) {
			return start(ctx, cfg, nodes)
		},
		Dial: dial,
	}
}
