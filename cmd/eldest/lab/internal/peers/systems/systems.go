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

// Mains are the main functions of the servers that are Go libraries, by their names.
var Mains = map[string]peer.Main{"nats": natspeer.Main, "raft": raftpeer.Main}
