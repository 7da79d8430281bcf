package badinput

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// untilTheEnd is a lead function that does nothing until its context ends.
func untilTheEnd(ctx context.Context, _ *elector.Leadership) error {
	<-ctx.Done()
	return nil
}

// node is the config of a node that sends nothing while it leads.
func (s *stage) node(id string) elector.Config {
	cfg := elector.Config{
		Election: s.election, NodeID: id, Source: elector.Always(elector.Client(s.cli)),
		Session: lease.Config{TTL: quiet},
	}
	cfg.Candidate.Recheck, cfg.Observer.Recheck = -1, -1
	return cfg
}

// electorSection: configs, and Run.
func electorSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	cfg := st.node("running")
	cfg.Source = elector.Always(elector.Client(st.admin)) // whose requests are not counted
	running, err := elector.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(st.ctx)
	done := make(chan error, 1)
	go func() { done <- running.Run(ctx, untilTheEnd) }()
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	_, err = running.Watch().NextWhere(st.ctx, func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)

	s := st.section("elector", "`New` unless said otherwise. A node that runs leads meanwhile.")
	s.left = "the node that runs goes on leading"
	s.lives = func(t *testing.T) { require.Equal(t, elector.Leading, running.Status().Role()) }
	refuses := func(tried string, change func(*elector.Config)) {
		cfg := st.node("n1")
		change(&cfg)
		s.rows = append(s.rows, row{tried: tried, op: "new elector", election: cfg.Election, want: errInvalid, try: func() error {
			return second(elector.New(cfg))
		}})
	}
	for _, bad := range badNames {
		refuses(bad.what, func(cfg *elector.Config) { cfg.Election = bad.name })
	}
	refuses("no node ID", func(cfg *elector.Config) { cfg.NodeID = "" })
	refuses("the same, with a `Codec` that needs none", func(cfg *elector.Config) { cfg.NodeID, cfg.Codec = "", nameless{} })
	refuses("a node ID of 1,025 bytes", func(cfg *elector.Config) { cfg.NodeID = long(1024) })
	refuses("a node ID that is not UTF-8", func(cfg *elector.Config) { cfg.NodeID = "\xff" })
	refuses("an address of 1,025 bytes", func(cfg *elector.Config) { cfg.Address = long(1024) })
	refuses("no source", func(cfg *elector.Config) { cfg.Source = nil })
	refuses("a client in `Session`", func(cfg *elector.Config) { cfg.Session.Lease = st.cli })
	refuses("a `Majority` in `Session`", func(cfg *elector.Config) { cfg.Session.Majority = st.cli })
	refuses("TTL −1 s", func(cfg *elector.Config) { cfg.Session.TTL = -time.Second })
	refuses("margin > TTL", func(cfg *elector.Config) { cfg.Session.Margin = 2 * quiet })
	refuses("an election in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Election = "invoices" })
	refuses("a client in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.KV = st.cli })
	refuses("a value in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Value = []byte("v") })
	refuses("a turn in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Turn = election.NewTurn() })
	refuses("a session in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Session = &lease.Session{} })
	refuses("a negative time-out in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Timeout = -1 })
	refuses("an election in `Observer`", func(cfg *elector.Config) { cfg.Observer.Election = st.election })
	refuses("a client in `Observer`", func(cfg *elector.Config) { cfg.Observer.KV = st.cli })
	refuses("a negative time-out in `Observer`", func(cfg *elector.Config) { cfg.Observer.Timeout = -1 })
	refuses("`Drain` −1 s", func(cfg *elector.Config) { cfg.Drain = -time.Second })
	refuses("`Leave` −1 s", func(cfg *elector.Config) { cfg.Leave = -time.Second })
	refuses("`Stable` −1 s", func(cfg *elector.Config) { cfg.Stable = -time.Second })

	idle, err := elector.New(st.node("idle"))
	require.NoError(t, err)
	run := func(tried string, e *elector.Elector, ctx context.Context, lead func(context.Context, *elector.Leadership) error, want error) {
		s.rows = append(s.rows, row{tried: tried, op: "run", election: st.election, want: []error{want}, try: func() error { return e.Run(ctx, lead) }})
	}
	over, cancel := context.WithCancel(st.ctx)
	cancel()
	run("`Run`: no context", idle, absent, untilTheEnd, eldest.ErrInvalid)
	run("`Run`: no lead function", idle, st.ctx, nil, eldest.ErrInvalid)
	run("`Run`: a context that has ended", idle, over, untilTheEnd, context.Canceled)
	run("`Run` while it runs", running, st.ctx, untilTheEnd, eldest.ErrCampaigning)
	reason := func(tried string, source elector.Source, want ...error) {
		s.rows = append(s.rows, row{tried: tried, want: want, try: func() error {
			cfg := st.node("lonely")
			cfg.Source = source
			return st.reason(cfg, want)
		}})
	}
	nobody := errors.New("no client yet")
	reason("a source that gives no clients: `Status().Reason()`", elector.Always(elector.Clients{}), eldest.ErrInvalid)
	reason("a source that gives a nil `*clientv3.Client`: the same", elector.Always(elector.Clients{KV: none, Watcher: none, Lease: none}), eldest.ErrInvalid)
	reason("a source that fails: the same", func(context.Context) (elector.Clients, error) { return elector.Clients{}, nobody }, nobody)
	watch := idle.Watch()
	s.rows = append(s.rows,
		row{tried: "`Watch.Next`: no context", op: "status", election: st.election, want: errInvalid, try: func() error { return second(watch.Next(absent)) }},
		row{tried: "`Watch.NextWhere`: no condition", op: "status", election: st.election, want: errInvalid, try: func() error { return second(watch.NextWhere(st.ctx, nil)) }},
	)
	s.rows = append(s.rows, row{tried: "`Status` before `Run`", want: []error{eldest.ErrClosed}, op: "status", election: st.election, try: func() error {
		fresh, err := elector.New(st.node("fresh"))
		if err != nil {
			return err
		}
		if role := fresh.Status().Role(); role != elector.Neither {
			return fmt.Errorf("it is %v", role)
		}
		return fresh.Status().Reason()
	}})
	return s
}

// nameless is a codec that has no place for a node's ID.
type nameless struct{}

func (nameless) Encode(id identity.Identity) ([]byte, error) { return []byte(id.Address), nil }

func (nameless) Decode(value []byte) (identity.Identity, error) {
	return identity.Identity{Address: string(value)}, nil
}

// reason runs a node until its status gives one of the wanted reasons, stops it, and
// returns that.
func (s *stage) reason(cfg elector.Config, want []error) error {
	e, err := elector.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(s.ctx, etcdtest.Patience)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, untilTheEnd) }()
	status, err := e.Watch().NextWhere(ctx, func(st elector.Status) bool {
		return st.Role() == elector.Neither && errors.Is(st.Reason(), want[0])
	})
	if err != nil {
		err = fmt.Errorf("the status is %v: %w", e.Status(), err)
	} else {
		err = status.Reason()
	}
	stop()
	if ended := <-done; !errors.Is(ended, context.Canceled) && !errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("the end is %w", ended)
	}
	return err
}
