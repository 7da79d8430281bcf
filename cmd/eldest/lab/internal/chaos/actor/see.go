package actor

import (
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// saw files a read.
func (a *actor) saw(kvs []*mvccpb.KeyValue, at, until time.Duration, token int64) {
	e := oracle.Event{Kind: oracle.Read, At: at, Until: until, Token: token}
	if len(kvs) > 0 {
		name, err := oracle.ReadValue(string(kvs[0].Value))
		if err != nil {
			name = string(kvs[0].Value) // nobody's: the oracle will not know it either
		}
		e.Write, e.Rev = name, kvs[0].ModRevision
	}
	a.tell(e)
}

func (a *actor) pause(end <-chan struct{}, least, most time.Duration) {
	timer := time.NewTimer(least + rand.N(most-least+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-end:
	}
}

// headcount is how many goroutines there are.
type headcount int

// census counts them.
func census() headcount { return headcount(runtime.NumGoroutine()) }

// partingTime is how long goroutines may take to end after everything was closed.
const partingTime = 3 * time.Second

// mostText is how much is said of goroutines that are left: it goes out as one line.
const mostText = 16 << 10

// left lists what goroutines there are more than there were, by where they are.
func (before headcount) left() []string {
	for deadline := time.Now().Add(partingTime); census() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return []string{"goroutines: " + told(stacks())}
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

// told is as much of a text as is told.
func told(text string) string { return text[:min(len(text), mostText)] }

// watcher is the goroutine that etcd's client has for each watch. (That of a stream goes on
// now and then when the last watch in it has ended: in one departure of some hundred.)
const watcher = "client/v3.(*watchGRPCStream).serveSubstream"

// watching says whether there are watches still, after everybody who could want one has
// left. It is asked while the client is open: a client that ends takes all its watches with
// it, those too that somebody has forgotten.
func watching() []string {
	for deadline := time.Now().Add(partingTime); ; time.Sleep(10 * time.Millisecond) {
		switch text := stacks(); {
		case !strings.Contains(text, watcher):
			return nil
		case time.Now().After(deadline):
			return []string{"a watch: " + told(text)}
		}
	}
}
