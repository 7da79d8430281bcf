package elector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// sighting is a status of a node, with the time of the sample that showed it first and the time of
// the sample before, which did not show it yet.
type sighting struct {
	not, at time.Time
	elector.Status
}

// samples has the results of reading all statuses each millisecond.
type samples struct {
	names    []string
	statuses []func() elector.Status
	begin    time.Time

	mu sync.Mutex
	// history has the changes of each node's role, leader or tenure.
	history [][]sighting
	looks   int
	last    time.Time // when the last sample began
	twice   []string
}

// sample reads the statuses until the end of the test, and then fails it if two nodes led at one
// moment, or if there were too few samples to decide that.
func sample(t *testing.T, nodes []*node) *samples {
	t.Helper()
	var names []string
	var statuses []func() elector.Status
	for _, n := range nodes {
		names, statuses = append(names, n.id), append(statuses, n.Status)
	}
	return sampleAll(t, names, statuses)
}

func sampleAll(t *testing.T, names []string, statuses []func() elector.Status) *samples {
	t.Helper()
	s := &samples{names: names, statuses: statuses, begin: time.Now(), history: make([][]sighting, len(names))}
	ctx, stop := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		rhythm := time.NewTicker(time.Millisecond)
		defer rhythm.Stop()
		for ctx.Err() == nil {
			s.look()
			<-rhythm.C
		}
	})
	t.Cleanup(func() {
		stop()
		looking.Wait()
		took := time.Since(s.begin)
		t.Logf("%d looks in %v at %d statuses each: two leaders in %d of them", s.looks, took.Round(time.Millisecond), len(names), len(s.twice))
		assert.Empty(t, s.twice, "two nodes led at one moment")
		assert.Greater(t, s.looks, int(took/(50*time.Millisecond)), "INVALID: too few looks")
		if t.Failed() {
			s.show(t)
		}
	})
	return s
}

func (s *samples) look() {
	statuses := make([]elector.Status, len(s.names))
	first := -1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	before := s.last
	s.last = time.Now()
	for i, status := range s.statuses {
		statuses[i] = status()
		if statuses[i].Role() != elector.Leading {
			continue
		}
		// A node that led before another one was sampled, and leads in the same tenure after that,
		// led at that moment as well.
		if first >= 0 {
			again := s.statuses[first]()
			if same(again, statuses[first]) {
				s.twice = append(s.twice, fmt.Sprintf("%v: %s %v and %s %v", time.Since(s.begin), s.names[first], statuses[first], s.names[i], statuses[i]))
			}
			statuses[first] = again // otherwise a delayed sample would show a tenure that was over before the other node led
		}
		first = i
	}
	now := time.Now()
	for i, status := range statuses {
		seen := s.history[i]
		if len(seen) == 0 || !same(seen[len(seen)-1].Status, status) {
			s.history[i] = append(seen, sighting{not: before, at: now, Status: status})
		}
	}
}

// same reports whether two statuses have the same role and the same tenure.
func same(a, b elector.Status) bool {
	_, ownA, _ := a.Own()
	_, ownB, _ := b.Own()
	leaderA, _ := a.Leader()
	leaderB, _ := b.Leader()
	return a.Role() == b.Role() && ownA == ownB && leaderA.Token == leaderB.Token
}

// since returns the status of a node at a moment, and its changes after that.
func (s *samples) since(i int, at time.Time) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, _ := slices.BinarySearchFunc(s.history[i], at, func(seen sighting, at time.Time) int { return seen.at.Compare(at) })
	return slices.Clone(s.history[i][max(0, after-1):])
}

// became waits until a node is seen in a role after a moment, and returns the time from that moment
// to the last sample without the role: a late sample must not count as a late node.
func (s *samples) became(t *testing.T, i int, role elector.Role, after time.Time) time.Duration {
	t.Helper()
	var took time.Duration
	require.Eventually(t, func() bool {
		for _, seen := range s.since(i, after) {
			if seen.Role() == role {
				took = max(0, seen.not.Sub(after))
				return true
			}
		}
		return false
	}, etcdtest.Patience, time.Millisecond, "%s was not seen %v: %v", s.names[i], role, s.statuses[i]())
	return took
}

// only requires that a node had exactly the given roles, in this order, from one moment to another.
func (s *samples) only(t *testing.T, i int, from, to time.Time, roles ...elector.Role) {
	t.Helper()
	var seen []elector.Role
	for _, status := range s.since(i, from) {
		if status.at.Before(to) && (len(seen) == 0 || seen[len(seen)-1] != status.Role()) {
			seen = append(seen, status.Role())
		}
	}
	require.Equal(t, roles, seen, "%s", s.names[i])
}

// never requires that a node has not been in a role since a moment.
func (s *samples) never(t *testing.T, i int, from time.Time, role elector.Role) {
	t.Helper()
	for _, seen := range s.since(i, from) {
		require.NotEqual(t, role, seen.Role(), "%s", s.names[i])
	}
}

// lost returns when a node was last seen to have lost its session.
func (s *samples) lost() (last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, history := range s.history {
		for _, seen := range history {
			if errors.Is(seen.Reason(), eldest.ErrSessionLost) && seen.at.After(last) {
				last = seen.at
			}
		}
	}
	return last
}

func (s *samples) show(t *testing.T) {
	for i, name := range s.names {
		for _, seen := range s.history[i] {
			t.Logf("%10v %s %v", seen.at.Sub(s.begin).Round(time.Millisecond), name, seen.Status)
		}
	}
}

// nodesOf names the nodes of a queue.
func nodesOf(t testing.TB, queue []observe.Entry) []string {
	t.Helper()
	ids := []string{}
	for _, entry := range queue {
		id, err := identity.Protobuf{}.Decode(entry.Value)
		require.NoError(t, err)
		ids = append(ids, id.NodeID)
	}
	return ids
}
