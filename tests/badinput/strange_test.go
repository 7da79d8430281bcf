package badinput

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// strangeSection: keys that were put into an election's range by hand.
func strangeSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	session := st.session()
	c := st.candidate(session)

	s := st.section("Strange keys in an election's range",
		"Put by hand before there is a candidate. A key that names no lease is ignored, and reported by `Hooks.Foreign` ([row 18](reference/regressions.md)). etcd's own package takes each of them for a candidate and waits behind it.")
	s.sent = nil // it depends on etcd's answers
	s.left = "the session is alive"
	s.lives = func(t *testing.T) { require.NoError(t, session.Err()) }
	byHand := eldest.Candidate{Key: st.Election + "/2a"}
	s.rows = append(s.rows, row{
		tried: "a key of a candidate's shape, without a lease: it is a candidate to everybody", changes: true,
		try: func() error {
			put, err := st.Admin.Put(st.Ctx, byHand.Key, "")
			if err != nil {
				return err
			}
			byHand.Token = eldest.Token(put.Header.Revision)
			leader, err := observe.LeaderOf(st.Ctx, st.Client, st.Election)
			if err != nil {
				return err
			}
			if leader.Key != byHand.Key {
				return fmt.Errorf("the leader is %v", leader)
			}
			_, err = c.Try(st.Ctx)
			return err
		},
		want: []error{eldest.ErrNotElected}, op: "try", election: st.Election, key: c.Key(),
	}, row{
		tried: "the same, after `Evict`", changes: true,
		try: func() error {
			if err := election.Evict(st.Ctx, st.Client, st.Election, byHand); err != nil {
				return err
			}
			l, err := c.Try(st.Ctx)
			if err != nil {
				return err
			}
			return l.Resign(st.Ctx)
		},
		result: func() string { return "the candidate leads" },
	})
	return s
}

// observeSection: observers and queries.
func observeSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	// An observer that a busy machine does not make unknown.
	o, err := observe.New(observe.Config{Election: st.Election, KV: st.Admin, Watcher: st.Admin, Options: observe.Options{Timeout: etcdtest.Patience, WatchCheck: -1}})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	looking := o.Subscribe()
	state, err := looking.Next(st.Ctx)
	require.NoError(t, err)
	require.Equal(t, eldest.Nobody, state.Kind)
	ended, err := observe.New(observe.Config{Election: st.Election, KV: st.Admin, Watcher: st.Admin})
	require.NoError(t, err)
	ended.Close()
	late := ended.Subscribe()
	_, _ = late.Next(st.Ctx) // the newest state, if there was one

	s := st.section("observe", "No candidate leads.")
	s.left = "another observer continues to observe"
	s.lives = func(t *testing.T) { require.Equal(t, eldest.Nobody, o.State().Kind) }
	for _, bad := range badNames {
		s.rows = append(s.rows, row{tried: "`New`: " + bad.what, op: "observe", election: bad.name, want: errInvalid, try: func() error {
			return second(observe.New(observe.Config{Election: bad.name, KV: st.Client, Watcher: st.Client}))
		}})
	}
	for _, bad := range []struct {
		what   string
		change func(*observe.Config)
	}{
		{"no KV", func(cfg *observe.Config) { cfg.KV = nil }},
		{"a nil `*clientv3.Client` as KV", func(cfg *observe.Config) { cfg.KV = none }},
		{"no watcher", func(cfg *observe.Config) { cfg.Watcher = nil }},
		{"a nil `*clientv3.Client` as watcher", func(cfg *observe.Config) { cfg.Watcher = none }},
		{"a negative time-out", func(cfg *observe.Config) { cfg.Timeout = -1 }},
	} {
		cfg := observe.Config{Election: st.Election, KV: st.Client, Watcher: st.Client}
		bad.change(&cfg)
		s.rows = append(s.rows, row{tried: "`New`: " + bad.what, op: "observe", election: st.Election, want: errInvalid, try: func() error {
			return second(observe.New(cfg))
		}})
	}
	ask := func(tried, op, election string, want error, sent int, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: election, want: []error{want}, sent: sent, try: try})
	}
	ask("`LeaderOf`: no context", "leader", st.Election, eldest.ErrInvalid, 0, func() error { return second(observe.LeaderOf(absent, st.Client, st.Election)) })
	ask("`LeaderOf`: no client", "leader", st.Election, eldest.ErrInvalid, 0, func() error { return second(observe.LeaderOf(st.Ctx, nil, st.Election)) })
	ask("`LeaderOf`: a nil `*clientv3.Client`", "leader", st.Election, eldest.ErrInvalid, 0, func() error { return second(observe.LeaderOf(st.Ctx, none, st.Election)) })
	ask("`LeaderOf`: a nested name", "leader", "orders/eu", eldest.ErrInvalid, 0, func() error { return second(observe.LeaderOf(st.Ctx, st.Client, "orders/eu")) })
	ask("`LeaderOf` without a leader", "leader", st.Election, eldest.ErrNoLeader, 1, func() error { return second(observe.LeaderOf(st.Ctx, st.Client, st.Election)) })
	ask("`Queue`: no context", "queue", st.Election, eldest.ErrInvalid, 0, func() error { return second(observe.Queue(absent, st.Client, nil, st.Election)) })
	ask("`Queue`: no client", "queue", st.Election, eldest.ErrInvalid, 0, func() error { return second(observe.Queue(st.Ctx, nil, nil, st.Election)) })
	ask("`Queue`: an empty name", "queue", "", eldest.ErrInvalid, 0, func() error { return second(observe.Queue(st.Ctx, st.Client, nil, "")) })
	changes := func(ctx context.Context, cfg observe.Config) (err error) {
		for _, err = range observe.Changes(ctx, cfg) {
		}
		return err
	}
	good := observe.Config{Election: st.Election, KV: st.Client, Watcher: st.Client}
	ask("`Changes`: no context", "observe", st.Election, eldest.ErrInvalid, 0, func() error { return changes(absent, good) })
	ask("`Changes`: a nested name", "observe", "orders/eu", eldest.ErrInvalid, 0, func() error {
		return changes(st.Ctx, observe.Config{Election: "orders/eu", KV: st.Client, Watcher: st.Client})
	})
	ask("`Changes`: no client", "observe", st.Election, eldest.ErrInvalid, 0, func() error { return changes(st.Ctx, observe.Config{Election: st.Election}) })
	ask("`Subscription.Next`: no context", "observe", st.Election, eldest.ErrInvalid, 0, func() error { return second(looking.Next(absent)) })
	ask("`Next` of an observer that was closed", "observe", st.Election, eldest.ErrClosed, 0, func() error { return second(late.Next(st.Ctx)) })
	s.rows = append(s.rows,
		row{tried: "`Queue` without candidates", sent: 1, try: func() error { return second(observe.Queue(st.Ctx, st.Client, nil, st.Election)) },
			result: func() string { return "an empty queue" }},
		row{tried: "`Close` twice", try: func() error { ended.Close(); return nil }},
	)
	return s
}
