package raftpeer

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// entries is a raft.FSM: the election's log. It has no snapshots: elections have fewer entries than raft
// keeps without one.
type entries struct {
	mu  sync.Mutex
	all []string
}

// Apply implements raft.FSM.
func (e *entries) Apply(l *raft.Log) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, string(l.Data))
	return nil
}

// Snapshot implements raft.FSM.
func (*entries) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }

// Restore implements raft.FSM.
func (*entries) Restore(r io.ReadCloser) error { return errors.Join(errors.ErrUnsupported, r.Close()) }

func (e *entries) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}
