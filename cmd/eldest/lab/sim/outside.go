package sim

import (
	"sync"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// outside is a store that knows nothing of etcd and refuses tokens older than the newest
// it has seen: what protects data elsewhere from a leader that was stopped and goes on.
type outside struct {
	log *oracle.Log

	mu     sync.Mutex
	newest int64
}

// offer writes with a token. Its answer is in the log, in the order of the writes.
func (o *outside) offer(who string, token int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := oracle.Event{Who: who, Kind: oracle.FenceAccepted, Token: token}
	if token < o.newest {
		e.Kind = oracle.FenceRefused
	}
	if o.log.Add(e) { // the dead write nothing
		o.newest = max(o.newest, token)
	}
}

// writeOutside writes with the tenure's token to the store outside etcd, as soon as the
// process runs. It does not ask whether it leads: refusing is the store's part.
func (a *actor) writeOutside(t contender.Tenure) {
	for {
		a.mu.Lock()
		stopped := a.stopped
		a.mu.Unlock()
		if stopped == nil {
			break
		}
		<-stopped
	}
	a.stage.outside.offer(a.name, t.Token())
}
