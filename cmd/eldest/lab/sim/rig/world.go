package rig

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// afterlife is how long a bubble goes on after everything was closed. Whatever
// still runs then is a leak.
const afterlife = time.Minute

// bubble keeps bubbles one after another, because of clientNeverDone.
var bubble sync.Mutex

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
	dir, err := os.MkdirTemp(memoryDir(), "eldest-sim-")
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
			require.NoError(t, w.Server.authenticate(with.Ranges))
		}
		defer time.Sleep(afterlife)
		defer w.close()
		f(w)
	})
}

// Now returns the virtual time since the world began.
func (w *World) Now() time.Duration { return time.Since(w.start) }

// close ends what runs: clients first, so that none of them meets a dead
// server, then the server.
func (w *World) close() {
	for _, h := range w.Server.admitted() {
		h.Kill()
	}
	w.Server.Stop()
}

// memoryDir is where data is cheapest to write; "" means the usual place.
func memoryDir() string {
	const shm = "/dev/shm"
	if fi, err := os.Stat(shm); err == nil && fi.IsDir() {
		return shm
	}
	return ""
}
