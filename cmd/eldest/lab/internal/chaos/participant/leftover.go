package participant

import (
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

const (
	// partingTime is how long goroutines may take to end after everything was closed.
	partingTime = 3 * time.Second
	// mostText is how much is said of goroutines that are left.
	mostText = 16 << 10
)

// watcher is the goroutine that etcd's client has for each watch. (That of a stream goes on
// now and then when the last watch in it has ended: in one departure of some hundred.)
const watcher = "client/v3.(*watchGRPCStream).serveSubstream"

// watches says whether there are watches still, after everything that could want one has
// ended. It is asked while the client is open: a client that is closed ends all its watches,
// also those that somebody has forgotten.
func watches() []string {
	return left("a watch: ", func() bool { return !strings.Contains(stacks(), watcher) })
}

// goroutines says by their stacks that there are more goroutines than before.
func goroutines(before int) []string {
	return left("goroutines: ", func() bool { return runtime.NumGoroutine() <= before })
}

// left waits until all is gone, and says what goroutines there are if it is not.
func left(what string, gone func() bool) []string {
	for deadline := time.Now().Add(partingTime); !gone(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			text := stacks()
			return []string{what + text[:min(len(text), mostText)]}
		}
	}
	return nil
}

// stacks are those of all goroutines.
func stacks() string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1) // a Builder takes everything
	return text.String()
}
