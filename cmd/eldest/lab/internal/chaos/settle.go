package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// question bounds one request of the referee: the member that is asked may be about to
// come back.
const question = 700 * time.Millisecond

// list asks for the queue, and returns the event that tells of it.
func (s *stage) list(ctx context.Context) (oracle.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, question)
	defer cancel()
	e := oracle.Event{Kind: oracle.Queue, At: s.clock.Now(), Keys: []string{}}
	resp, err := s.field.All.Get(ctx, keys.Prefix(electionName), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return e, err
	}
	e.Until = s.clock.Now()
	for _, kv := range resp.Kvs {
		e.Keys = append(e.Keys, string(kv.Key))
	}
	return e, nil
}

// unsettled says what is not yet as it should be, "" for nothing: one participant leads,
// all others wait, and the queue is theirs alone, the leader's key first. wrote is a
// number of writes that the leader must have committed.
func (s *stage) unsettled(ctx context.Context, wrote func(token int64) bool) (why string, queue oracle.Event) {
	var want []string
	var leader actor.Notice
	for _, m := range s.crew.Members {
		n := m.Stands()
		switch n.Standing {
		case actor.Leading:
			if leader.Key != "" {
				return "two lead", queue
			}
			leader = n
		case actor.Waiting:
		default:
			return m.Who() + " does not stand", queue
		}
		want = append(want, keys.Candidate(electionName, n.Lease))
	}
	if leader.Key == "" {
		return "nobody leads", queue
	}
	if !wrote(leader.Token) {
		return fmt.Sprintf("the leader (token %d) does not write", leader.Token), queue
	}
	queue, err := s.list(ctx)
	if err != nil {
		return "etcd does not answer: " + err.Error(), queue
	}
	have := slices.Sorted(slices.Values(queue.Keys))
	slices.Sort(want)
	switch {
	case !slices.Equal(have, want):
		return fmt.Sprintf("the queue is %s, those who stand have %s", strings.Join(have, " "), strings.Join(want, " ")), queue
	case queue.Keys[0] != leader.Key:
		return fmt.Sprintf("%s leads, and the oldest is %s", leader.Key, queue.Keys[0]), queue
	}
	return "", queue
}

// settle blocks until the election has come to rest, for as long as it may take to recover
// and not longer, and files the queue. It returns what is wrong if it has not; err is for
// what proves nothing.
func (s *stage) settle(ctx context.Context, healed time.Duration) (wrong string, err error) {
	due := healed + s.cfg.Recovery()
	// The leader must write after the faults, not only before.
	before := map[int64]int{}
	wrote := func(token int64) bool {
		now := s.truth.Writes(token)
		if first, ok := before[token]; ok {
			return now > first
		}
		before[token] = now
		return false
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		changed := s.crew.Changed()
		why, queue := s.unsettled(ctx, wrote)
		if why == "" {
			return "", s.log.Add(queue)
		}
		if s.clock.Now() > due {
			return why, s.protocol(ctx)
		}
		select {
		case <-tick.C:
		case <-changed:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// protocol files the queue as it is, for the oracle to judge.
func (s *stage) protocol(ctx context.Context) error {
	var err error
	for range 5 {
		var queue oracle.Event
		if queue, err = s.list(ctx); err == nil {
			return s.log.Add(queue)
		}
	}
	return fmt.Errorf("etcd does not answer although nothing is wrong with it: %w", err)
}
