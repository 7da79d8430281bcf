package systems

import (
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/etcdpeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/natspeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/postgres"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/raftpeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/redispeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/zookeeper"
)

// All returns all systems, in the order in which they are shown.
func All() []peer.System {
	return []peer.System{
		etcdpeer.Eldest(), etcdpeer.Concurrency(), etcdpeer.ClientGo(), zookeeper.System(), natspeer.System(),
		redispeer.Single(), redispeer.Redlock(), postgres.System(), raftpeer.System(),
	}
}

// Named returns the system of a name.
func Named(name string) (peer.System, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return peer.System{}, false
}

// Main returns the main function of a server that is a Go library.
func Main(name string) (peer.Main, bool) {
	main, ok := map[string]peer.Main{"nats": natspeer.Main, "raft": raftpeer.Main}[name]
	return main, ok
}
