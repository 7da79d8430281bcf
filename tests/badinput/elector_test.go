package badinput

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
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

// node returns the config of a node that sends nothing while it leads.
func (s *stage) node(id string) elector.Config {
	cfg := elector.Config{
		Election: s.Election, NodeID: id, Source: elector.Always(elector.Client(s.Client)),
		Session: lease.Options{TTL: quiet},
	}
	cfg.Candidate.WatchCheck, cfg.Observer.WatchCheck = -1, -1
	return cfg
}

// electorSection: configs, and Run.
func electorSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	cfg := st.node("running")
	cfg.Source = elector.Always(elector.Client(st.Admin)) // its requests are not counted
	running, err := elector.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(st.Ctx)
	done := etcdtest.Go(func() error { return running.Run(ctx, untilTheEnd) })
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	require.NoError(t, etcdtest.Err(running.Watch().NextWhere(st.Ctx, func(s elector.Status) bool { return s.Role() == elector.Leading })))

	s := st.section("elector", "`New` unless said otherwise. A node that runs leads meanwhile.")
	s.left = "the node that runs continues to lead"
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
	refuses("the same, with a `Codec` that does not need it", func(cfg *elector.Config) { cfg.NodeID, cfg.Codec = "", nameless{} })
	refuses("a node ID of 1,025 bytes", func(cfg *elector.Config) { cfg.NodeID = long(1024) })
	refuses("a node ID that is not UTF-8", func(cfg *elector.Config) { cfg.NodeID = "\xff" })
	refuses("an address of 1,025 bytes", func(cfg *elector.Config) { cfg.Address = long(1024) })
	refuses("no source", func(cfg *elector.Config) { cfg.Source = nil })
	refuses("TTL −1 s", func(cfg *elector.Config) { cfg.Session.TTL = -time.Second })
	refuses("margin > TTL", func(cfg *elector.Config) { cfg.Session.Margin = 2 * quiet })
	refuses("a negative time-out in `Candidate`", func(cfg *elector.Config) { cfg.Candidate.Timeout = -1 })
	refuses("a negative time-out in `Observer`", func(cfg *elector.Config) { cfg.Observer.Timeout = -1 })
	refuses("`Drain` −1 s", func(cfg *elector.Config) { cfg.Drain = -time.Second })
	refuses("`Leave` −1 s", func(cfg *elector.Config) { cfg.Leave = -time.Second })
	refuses("`Stable` −1 s", func(cfg *elector.Config) { cfg.Stable = -time.Second })

	idle, err := elector.New(st.node("idle"))
	require.NoError(t, err)
	run := func(tried string, e *elector.Elector, ctx context.Context, lead func(context.Context, *elector.Leadership) error, want error) {
		s.rows = append(s.rows, row{tried: tried, op: "run", election: st.Election, want: []error{want}, try: func() error { return e.Run(ctx, lead) }})
	}
	over, cancel := context.WithCancel(st.Ctx)
	cancel()
	run("`Run`: no context", idle, absent, untilTheEnd, eldest.ErrInvalid)
	run("`Run`: no lead function", idle, st.Ctx, nil, eldest.ErrInvalid)
	run("`Run`: a context that has ended", idle, over, untilTheEnd, context.Canceled)
	run("`Run` while it runs", running, st.Ctx, untilTheEnd, eldest.ErrCampaigning)
	sets := func(tried string, ctx context.Context, address string) {
		s.rows = append(s.rows, row{tried: tried, op: "set address", election: st.Election, want: errInvalid, try: func() error {
			return running.SetAddress(ctx, address)
		}})
	}
	sets("`SetAddress`: no context", absent, "h:1")
	sets("`SetAddress`: an address of 1,025 bytes", st.Ctx, long(1024))
	sets("`SetAddress`: an address that is not UTF-8", st.Ctx, "\xff")
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
		row{tried: "`Watch.Next`: no context", op: "status", election: st.Election, want: errInvalid, try: func() error { return second(watch.Next(absent)) }},
		row{tried: "`Watch.NextWhere`: no condition", op: "status", election: st.Election, want: errInvalid, try: func() error { return second(watch.NextWhere(st.Ctx, nil)) }},
	)
	s.rows = append(s.rows, row{tried: "`Status` before `Run`", want: []error{eldest.ErrClosed}, op: "status", election: st.Election, try: func() error {
		fresh, err := elector.New(st.node("fresh"))
		if err != nil {
			return err
		}
		if role := fresh.Status().Role(); role != elector.Unknown {
			return fmt.Errorf("it is %v", role)
		}
		return fresh.Status().Reason()
	}})
	return s
}

// groupSection: the differences from an elector.
func groupSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	s := st.section("elector.Group", "`NewGroup` unless said otherwise. What an `Elector`'s config must not have, a group's must not have either. A `Run` leads meanwhile.")
	group := func(change func(*elector.Config)) (*elector.Group, error) {
		cfg := st.node("n1")
		cfg.Election = ""
		change(&cfg)
		return elector.NewGroup(cfg)
	}
	refuses := func(tried, election string, change func(*elector.Config)) {
		s.rows = append(s.rows, row{tried: tried, op: "new group", election: election, want: errInvalid, try: func() error {
			return second(group(change))
		}})
	}
	refuses("an election", "invoices", func(cfg *elector.Config) { cfg.Election = "invoices" })
	refuses("`Transfer`", "", func(cfg *elector.Config) { cfg.Transfer = true })
	refuses("`TakeOver`", "", func(cfg *elector.Config) { cfg.TakeOver = true })
	refuses("`Standby`", "", func(cfg *elector.Config) { cfg.Standby = func(context.Context, *elector.Positions) {} })
	refuses("`Starts` −1", "", func(cfg *elector.Config) { cfg.Starts = -1 })
	refuses("no node ID", "", func(cfg *elector.Config) { cfg.NodeID = "" })
	refuses("no source", "", func(cfg *elector.Config) { cfg.Source = nil })
	refuses("TTL −1 s", "", func(cfg *elector.Config) { cfg.Session.TTL = -time.Second })

	running, err := group(func(cfg *elector.Config) { cfg.Source = elector.Always(elector.Client(st.Admin)) }) // its requests are not counted
	require.NoError(t, err)
	ctx, stop := context.WithCancel(st.Ctx)
	won, done := make(chan *elector.Leadership, 1), make(chan error, 1)
	go func() {
		done <- running.Run(ctx, st.Election, func(ctx context.Context, l *elector.Leadership) error {
			won <- l
			return untilTheEnd(ctx, l)
		})
	}()
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	led := etcdtest.Take(t, won, "a win")
	s.left = "the `Run` continues to lead"
	s.lives = func(t *testing.T) { require.NoError(t, led.Err()) }
	run := func(tried, name string, ctx context.Context, lead func(context.Context, *elector.Leadership) error, want error) {
		s.rows = append(s.rows, row{tried: tried, op: "run", election: name, want: []error{want}, try: func() error { return running.Run(ctx, name, lead) }})
	}
	for _, bad := range badNames {
		run("`Run`: "+bad.what, bad.name, st.Ctx, untilTheEnd, eldest.ErrInvalid)
	}
	over, cancel := context.WithCancel(st.Ctx)
	cancel()
	run("`Run`: no context", "other", absent, untilTheEnd, eldest.ErrInvalid)
	run("`Run`: no lead function", "other", st.Ctx, nil, eldest.ErrInvalid)
	run("`Run`: a context that has ended", "other", over, untilTheEnd, context.Canceled)
	run("`Run` of an election that runs", st.Election, st.Ctx, untilTheEnd, eldest.ErrCampaigning)
	return s
}

// nameless is a codec that does not encode a node's ID.
type nameless struct{}

func (nameless) Encode(id identity.Identity) ([]byte, error) { return []byte(id.Address), nil }

func (nameless) Decode(value []byte) (identity.Identity, error) {
	return identity.Identity{Address: string(value)}, nil
}

// reason runs a node until its status has one of the wanted reasons, stops it, and returns that
// reason.
func (s *stage) reason(cfg elector.Config, want []error) error {
	e, err := elector.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(s.Ctx, etcdtest.Patience)
	defer stop()
	done := etcdtest.Go(func() error { return e.Run(ctx, untilTheEnd) })
	status, err := e.Watch().NextWhere(ctx, func(st elector.Status) bool {
		return st.Role() == elector.Unknown && errors.Is(st.Reason(), want[0])
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
