package rig

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/stretchr/testify/require"
	_ "go.etcd.io/etcd/client/v3" // owns the variable below
)

// clientNeverDone is clientv3's valCtxCh: the Done channel, made when the program starts and never
// closed, of the context of every watch stream. A goroutine of a bubble that waits on a channel
// from outside is not durably blocked, so the bubble's clock would never advance again; so each
// bubble sets its own channel there. Pinned to client/v3 v3.7.3: TestVirtualTime fails at once if
// the variable moves.
//
//go:linkname clientNeverDone go.etcd.io/etcd/client/v3.valCtxCh
var clientNeverDone chan struct{}

// afterlife is how long a bubble continues after everything was closed. A goroutine that still runs
// then is a leak.
const afterlife = time.Minute

// bubble makes bubbles run one after another, because of clientNeverDone.
var bubble sync.Mutex

// Options are settings that most worlds do not need.
type Options struct {
	// Tick is etcd's; 0 means 100 ms, its default. An election takes ten of them,
	// and the least TTL is fifteen. Long quiet runs are cheaper with fewer ticks.
	Tick time.Duration
	// Tokens, if not 0, turns authentication on, with tokens that expire after that time without
	// use, in whole seconds. The host named [Admin] may do everything, all others may use only
	// Ranges.
	Tokens time.Duration
	// Ranges are key ranges, from and to, that all hosts may read and write.
	Ranges [][2]string
}

// Admin is the name of the host whose user may do everything.
const Admin = "admin"

// World is one server and the hosts around it, inside one bubble.
type World struct {
	T      testing.TB
	Server *Server

	start time.Time
	with  Options
}

// Run calls f with a running world, in a bubble of its own, and closes the
// world afterwards. It returns when everything in the bubble has ended; a
// goroutine that is still there a virtual minute later panics the test. Safe
// for parallel tests, which then wait for each other.
func Run(t *testing.T, f func(w *World)) {
	t.Helper()
	RunWith(t, Options{}, f)
}

// RunWith is [Run] for a world with options.
func RunWith(t *testing.T, with Options, f func(w *World)) {
	t.Helper()
	bubble.Lock()
	defer bubble.Unlock()
	dir, err := os.MkdirTemp("/dev/shm", "eldest-sim-") // where data is cheapest to write
	if err != nil {
		dir, err = os.MkdirTemp("", "eldest-sim-")
	}
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()

	synctest.Test(t, func(t *testing.T) {
		old := clientNeverDone
		clientNeverDone = make(chan struct{})
		defer func() {
			synctest.Wait() // orders the reads of goroutines that ended before the write
			clientNeverDone = old
		}()

		w := &World{T: t, start: time.Now(), with: with}
		w.Server = newServer(dir, with, w.Now)
		require.NoError(t, w.Server.Start())
		if with.Tokens > 0 {
			require.NoError(t, w.Server.authenticate())
		}
		defer time.Sleep(afterlife)
		defer w.close()
		f(w)
	})
}

// Now returns the virtual time since the world began.
func (w *World) Now() time.Duration { return time.Since(w.start) }

// close ends everything: first the clients, so that none of them uses a stopped server, then the
// server.
func (w *World) close() {
	for _, h := range w.Server.admitted() {
		h.Kill()
	}
	w.Server.Stop()
}
