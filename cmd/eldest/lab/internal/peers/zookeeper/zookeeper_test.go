package zookeeper_test

import (
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/zookeeper"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

func TestZooKeeper(t *testing.T) {
	peertest.Suite{
		System: zookeeper.System(), Setting: peer.Shortest, Cut: peer.Shortest,
		Version: `^ZooKeeper 3\.\d+\.\d+$`, Nodes: 3, Written: 1, Idle: true, Resigned: 1, Many: 500,
	}.Run(t, nil)
}
