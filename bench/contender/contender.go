package contender

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Contender is one way to elect a leader. Its methods may be called from many
// goroutines. What it cannot do at all is an error that wraps errors.ErrUnsupported.
type Contender interface {
	// Name is what tables and files call it.
	Name() string
	// Open starts a session: a lease of the given TTL, kept alive until Close. It
	// blocks until etcd has granted the lease or ctx ends; ctx means nothing
	// afterwards.
	Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error)
	// Sight starts to look at an election, for any number of observers in this
	// process. Whatever they can share they share. ctx bounds the start only.
	Sight(ctx context.Context, client *clientv3.Client, election string) (Sight, error)
}

// Session is a lease that is kept alive, and what is bound to it.
type Session interface {
	// Candidate makes a candidate, which does not stand yet.
	Candidate(election, value string) (Candidate, error)
	// Close takes everything that is bound to the session out of etcd, and blocks
	// until that is confirmed or ctx ends. The session has ended either way.
	Close(ctx context.Context) error
}

// Candidate stands in one election, once.
type Candidate interface {
	// Campaign blocks until the candidate leads, and returns when that was: the
	// moment at which the contender's own call came back.
	Campaign(ctx context.Context) (won time.Time, err error)
	// Key is the candidate's key, once it leads.
	Key() string
	// Resign gives leadership up and blocks until that is confirmed.
	Resign(ctx context.Context) error
	// Lost delivers, once, when the contender's user was told that the tenure is
	// over. nil if the contender never tells.
	Lost() <-chan time.Time
	// Put writes under the protection that the contender offers its leaders, in one
	// transaction. What is written goes with the session: nothing that was measured
	// stays behind, however the run ends.
	Put(ctx context.Context, key, value string) error
}

// Sight is what the observers of one process see of an election.
type Sight interface {
	// Feed adds an observer. It blocks until the observer is in place.
	Feed(ctx context.Context) (Feed, error)
	// Close ends all of them, and waits; ctx bounds what etcd is told.
	Close(ctx context.Context)
}

// Feed is one observer. It is read by one goroutine at a time.
type Feed interface {
	// Next blocks until there is news, and returns the leader's key, "" for nobody.
	Next(ctx context.Context) (leader string, err error)
}

// all is filled by the files of the contenders.
var all []Contender

// register makes a contender known. It is called from init functions.
func register(c Contender) { all = append(all, c) }

// order is in which order contenders are shown and take turns; one that is not named
// comes last.
var order = []string{"eldest", "concurrency", "herd", "floor"}

// All returns every contender, ours first.
func All() []Contender {
	sorted := slices.Clone(all)
	rank := func(c Contender) int {
		if i := slices.Index(order, c.Name()); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(sorted, func(a, b Contender) int { return rank(a) - rank(b) })
	return sorted
}

// Names returns the names of All.
func Names() []string {
	var names []string
	for _, c := range All() {
		names = append(names, c.Name())
	}
	return names
}

// Named returns the contender of that name.
func Named(name string) (Contender, error) {
	for _, c := range all {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no contender %q; there are %s", name, strings.Join(Names(), ", "))
}

// once delivers the time at which done is closed.
func once(done <-chan struct{}) <-chan time.Time {
	lost := make(chan time.Time, 1)
	go func() {
		<-done
		lost <- time.Now()
	}()
	return lost
}
