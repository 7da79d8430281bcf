package etcdpeer_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/etcdpeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/keeper"
)

// TestMain makes this executable a keeper and a member of etcd, as the command is.
func TestMain(m *testing.M) {
	keeper.Serve(connect.Kept)
	if len(os.Args) > 2 && os.Args[1] == "etcd" && os.Args[2] == "member" {
		if err := memberproc.Run(context.Background(), os.Args[3:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	peertest.Main(m, nil)
}

var suite = peertest.Suite{
	Setting: peer.Defaults, Cut: peer.Shortest, Version: `^etcd 3\.\d+\.\d+`, Nodes: 3, Written: 1, Many: 20,
}

// Its servers are those of all systems.
func TestStoreLeader(t *testing.T) {
	t.Parallel()
	s := suite
	s.System = etcdpeer.Eldest()
	s.StoreLeader(t, peertest.Start(t, s.System, s.Setting))
}

// The systems have the same servers.
func TestSystems(t *testing.T) {
	t.Parallel()
	servers, suite := peertest.Start(t, etcdpeer.Eldest(), peer.Defaults), suite
	t.Run("elections", func(t *testing.T) {
		for _, suite.System = range []peer.System{etcdpeer.ClientGo(), etcdpeer.Concurrency(), etcdpeer.Eldest()} {
			s := suite
			s.Rare = s.System.Name == "client-go"
			t.Run(s.System.Name, func(t *testing.T) {
				t.Parallel()
				further := map[string]func(*testing.T, *peer.Servers){}
				if s.System.Name == "eldest" {
					further["guards"] = guards
				}
				s.Elections(t, servers, further)
			})
		}
	})
	suite.Servers(t, servers)
}

// A keeper guards the process with the shortest settings only.
func guards(t *testing.T, servers *peer.Servers) {
	its := func(setting string) []int {
		return peertest.Participants(t, etcdpeer.Eldest(), servers, setting, 1)[0].Client.(peer.Guarded).Guards()
	}
	require.Empty(t, its(peer.Defaults))
	pids := its(peer.Shortest)
	require.Len(t, pids, 1)
	require.DirExists(t, fmt.Sprintf("/proc/%d", pids[0]))
}
