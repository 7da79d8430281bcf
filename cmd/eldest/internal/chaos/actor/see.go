package actor

import (
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/oracle"
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
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a Builder takes everything
			text := stacks.String()
			return []string{"goroutines: " + text[:min(len(text), mostText)]}
		}
	}
	return nil
}
