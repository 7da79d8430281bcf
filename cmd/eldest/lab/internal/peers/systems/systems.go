package systems

import (
	"fmt"
	"strings"

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

// Select returns the systems of these names, in the order of All; without names all of them.
func Select(names []string) ([]peer.System, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var known []string
	var selected []peer.System
	for _, s := range All() {
		known = append(known, s.Name)
		if len(names) == 0 || wanted[s.Name] {
			selected = append(selected, s)
		}
		delete(wanted, s.Name)
	}
	for name := range wanted {
		return nil, fmt.Errorf("no system %q; there are %s", name, strings.Join(known, ", "))
	}
	return selected, nil
}

// Main returns the main function of a server that is a Go library.
func Main(name string) (peer.Main, bool) {
	main, ok := map[string]peer.Main{"nats": natspeer.Main, "raft": raftpeer.Main}[name]
	return main, ok
}
