package endpoints

import (
	"sync"
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) } // no goroutine is left by a closed client

// three is the cluster of the tests that run at the moment and change nothing at it.
var three struct {
	sync.Mutex
	cluster *etcdtest.Cluster
	users   int
}

// Three returns a cluster of three members, which the test must not change. It is closed with the last
// of the tests that use it at the same time.
func Three(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	three.Lock()
	defer three.Unlock()
	if three.users == 0 {
		c, err := etcdtest.New(etcdtest.Context(t), etcdtest.Config{Members: 3})
		if err != nil {
			t.Fatal(err)
		}
		three.cluster = c
	}
	three.users++
	t.Cleanup(func() {
		three.Lock()
		defer three.Unlock()
		if three.users--; three.users > 0 {
			return
		}
		if err := three.cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return three.cluster
}
