package sim

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

const (
	electionName = "election"
	prefix       = electionName + "/"
	dataKey      = "data"
)

// stage is one election in one world: who takes part, and the log of it.
type stage struct {
	world  *rig.World
	impl   contender.Contender
	ttl    time.Duration
	tempo  tempo
	log    *oracle.Log
	admin  *rig.Host     // the hand that revokes, deletes, compacts; no faults here
	healed chan struct{} // closed when calm is set
	calm   atomic.Bool   // the faults are over: leaders need not write so often

	outside outside

	mu     sync.Mutex
	actors []*actor
}

func newStage(w *rig.World, impl contender.Contender, ttl time.Duration) *stage {
	log := oracle.NewLog(w.Now, w.Server.Rev)
	return &stage{
		world: w, impl: impl, ttl: ttl, tempo: usual, log: log,
		admin: w.Host(rig.Admin), healed: make(chan struct{}), outside: outside{log: log},
	}
}

// enter puts a participant on a host of its own on the stage.
func (s *stage) enter(name string) *actor {
	a := &actor{stage: s, name: name, host: s.world.Host(name), clock: newClock(0)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actors = append(s.actors, a)
	return a
}

// everybody returns all participants so far.
func (s *stage) everybody() []*actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*actor(nil), s.actors...)
}

// queue returns the candidates' keys as they are in the store, oldest first.
func (s *stage) queue() []oracle.Change {
	var q []oracle.Change
	for _, c := range s.world.Server.Tap.Live(prefix, electionName+"0") {
		if strings.HasPrefix(c.Key, prefix) {
			q = append(q, c)
		}
	}
	sort.Slice(q, func(i, j int) bool { return q[i].Create < q[j].Create })
	return q
}

// owner returns who stands with the lease, or nil.
func (s *stage) owner(lease int64) *actor {
	for _, a := range s.everybody() {
		if a.lease() == lease {
			return a
		}
	}
	return nil
}

// until lets virtual time pass until cond holds, at most two minutes of it.
func (s *stage) until(what string, cond func() bool) {
	s.world.T.Helper()
	for end := s.world.Now() + 2*time.Minute; !cond(); {
		require.Less(s.world.T, s.world.Now(), end, "waiting until %s; the log:\n%s", what, s.history())
		time.Sleep(10 * time.Millisecond)
	}
}

// finish has everybody leave, looks for what they left behind, and judges the run.
func (s *stage) finish() []oracle.Violation {
	for _, a := range s.everybody() {
		a.leave()
	}
	time.Sleep(time.Second) // for the tap to see the last of it
	left := func(what string) { s.log.Add(oracle.Event{Kind: oracle.Left, Text: what}) }
	for _, k := range s.queue() {
		left("key " + k.Key)
	}
	for key := range s.world.Server.Tap.Live(mailboxes, mailboxesEnd) {
		left("mailbox " + key)
	}
	for key := range s.world.Server.Tap.Live(beats, beatsEnd) {
		left("heartbeat " + key)
	}
	leases, err := s.admin.Client.Leases(s.world.T.Context())
	require.NoError(s.world.T, err)
	for _, l := range leases.Leases {
		left(fmt.Sprintf("lease %x", int64(l.ID)))
	}
	return s.history().Check()
}

func (s *stage) history() *oracle.History {
	changes, complete := s.world.Server.Tap.Changes()
	require.True(s.world.T, complete, "INVALID: the tap was overtaken by a compaction")
	changes = slices.DeleteFunc(changes, func(c oracle.Change) bool { return strings.HasPrefix(c.Key, beats) })
	return &oracle.History{
		// A server that comes back gives every lease another TTL, and its own election.
		About: oracle.About{
			Prefix: prefix, Data: dataKey, TTL: s.ttl,
			Recovery: s.ttl + 3*time.Second + 20*s.tempo.tick,
		},
		Events: s.log.Events(), Changes: changes,
	}
}
