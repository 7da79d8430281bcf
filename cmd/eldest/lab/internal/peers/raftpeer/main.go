package raftpeer

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// orphaned is how long a group has no leader before the extra voter leaves it: its participants have ended.
const orphaned = 30 * time.Second

// Main is the process of the extra voters: one for each election. Its arguments are the name of the settings
// and its control address.
func Main(args []string) error {
	if len(args) != 2 {
		return errors.New("two arguments are required: the settings and the control address")
	}
	e := &extras{setting: args[0], control: args[1], groups: map[string]*voter{}}
	listener, err := direct{}.Listen(e.control)
	if err != nil {
		return err
	}
	return http.Serve(listener, e.handler()) //nolint:gosec // its clients are ours
}

// extras are the extra voters.
type extras struct {
	setting, control string

	mu     sync.Mutex
	groups map[string]*voter // by election
	left   uint64            // the sum of the last indexes of groups that were left
}

// opened is an extra voter.
type opened struct {
	ID      raft.ServerID
	Address raft.ServerAddress
}

func (e *extras) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(openPath, func(w http.ResponseWriter, r *http.Request) {
		v, err := e.voter(r.FormValue("election"))
		if err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, opened{v.id, v.transport.LocalAddr()}, nil)
	})
	mux.HandleFunc(knownPath, func(w http.ResponseWriter, r *http.Request) {
		v := e.group(r.FormValue("election"))
		if v == nil || !v.knows(raft.ServerID(r.FormValue("id"))) {
			answer(w, nil, errors.New("the extra voter does not know it"))
			return
		}
		answer(w, nil, nil)
	})
	mux.HandleFunc(leaderPath, func(w http.ResponseWriter, r *http.Request) {
		v := e.group(r.FormValue("election"))
		if v == nil || v.leader() == "" || isExtra(v.leader()) {
			answer(w, nil, errors.New("no participant leads"))
			return
		}
		answer(w, v.leader(), nil)
	})
	mux.HandleFunc(writesPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, e.writes(), nil) })
	return mux
}

// group returns the extra voter of an election, nil if there is none.
func (e *extras) group(election string) *voter {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.groups[election]
}

// voter returns the extra voter of an election. There is one from the first call on.
func (e *extras) voter(election string) (*voter, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.groups[election]; v != nil {
		return v, nil
	}
	v, err := newVoter(direct{}, e.setting, voterID(extraName, e.control))
	if err != nil {
		return nil, err
	}
	e.groups[election] = v
	go func() { // until the process ends
		v.decline()
		e.mu.Lock()
		delete(e.groups, election)
		e.left += v.LastIndex()
		e.mu.Unlock()
		_ = v.shutdown() // nothing depends on it any more
	}()
	return v, nil
}

// decline transfers the leadership away when the extra voter has won, until the group has ended.
func (v *voter) decline() {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for led := time.Now(); time.Since(led) < orphaned; {
		select {
		case <-v.LeaderCh():
		case <-ticks.C:
		}
		if v.leads() {
			_ = v.handOver(v.life) // the next tick tries again
		}
		if v.leader() != "" {
			led = time.Now()
		}
	}
}

func (e *extras) writes() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	sum := e.left
	for _, v := range e.groups {
		sum += v.LastIndex()
	}
	return sum
}
