package badinput

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// leaseSection: sessions. The last rows end sessions of their own.
func leaseSection(t *testing.T) section {
	c := etcdtest.Start(t, etcdtest.Config{Heartbeat: 100 * time.Millisecond, Election: time.Second}) // etcd's own timeouts
	st := newStage(t, c, "orders")
	session := st.session()
	closed, abandoned := st.session(), st.session()
	require.NoError(t, closed.Close(st.Ctx))
	abandoned.Abandon()
	gone, err := st.Admin.Grant(st.Ctx, 60)
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(st.Admin.Revoke(st.Ctx, gone.ID)))
	over, cancel := context.WithCancel(st.Ctx)
	cancel()

	s := st.section("lease", "A default etcd: election timeout 1 s, so its shortest lease is 2 s. `Open` unless said otherwise.")
	s.left = "a session that was opened before is alive"
	s.lives = func(t *testing.T) { require.NoError(t, session.Err()) }
	open := func(tried string, change func(*lease.Config)) {
		s.rows = append(s.rows, row{tried: tried, op: "open session", want: errInvalid, try: func() error {
			cfg := lease.Config{Lease: st.Client, Options: lease.Options{TTL: 10 * time.Second}}
			change(&cfg)
			return second(lease.Open(st.Ctx, cfg))
		}})
	}
	rhythm := func(every, timeout time.Duration) func(*lease.Config) {
		return func(cfg *lease.Config) {
			cfg.Renewal = func(time.Duration) lease.Renewal { return lease.Renewal{Every: every, Timeout: timeout} }
		}
	}
	open("no client", func(cfg *lease.Config) { cfg.Lease = nil })
	open("a nil `*clientv3.Client`", func(cfg *lease.Config) { cfg.Lease = none })
	open("a namespaced `Lease`, which cannot list etcd's members", func(cfg *lease.Config) { cfg.Lease = namespace.NewLease(st.Client, "x/") })
	open("TTL −1 s", func(cfg *lease.Config) { cfg.TTL = -time.Second })
	open("TTL −1 ns", func(cfg *lease.Config) { cfg.TTL = -1 })
	open("TTL 24 h and 1 ns", func(cfg *lease.Config) { cfg.TTL = lease.MaxTTL + 1 })
	open("TTL 2,000,000 h", func(cfg *lease.Config) { cfg.TTL = 2_000_000 * time.Hour })
	open("margin = TTL", func(cfg *lease.Config) { cfg.Margin = 10 * time.Second })
	open("margin > TTL", func(cfg *lease.Config) { cfg.Margin = time.Minute })
	open("margin −1 s", func(cfg *lease.Config) { cfg.Margin = -time.Second })
	open("renewal every TTL", rhythm(10*time.Second, time.Second))
	open("renewal every TTL − margin", rhythm(9*time.Second, time.Second))
	open("renewal every 0 s", rhythm(0, time.Second))
	open("renewal every −1 s", rhythm(-time.Second, time.Second))
	open("renewal with a time-out of 0", rhythm(time.Second, 0))
	beats := func(h lease.Heartbeat) func(*lease.Config) { return func(cfg *lease.Config) { cfg.Heartbeat = h } }
	open("heartbeats: a timeout of 499 ms", beats(lease.Heartbeat{Timeout: lease.MinHeartbeat - time.Millisecond}))
	open("heartbeats: a timeout of −1 s", beats(lease.Heartbeat{Timeout: -time.Second}))
	open("heartbeats: a timeout that is not less than the TTL", beats(lease.Heartbeat{Timeout: 10 * time.Second}))
	open("heartbeats: an interval that does not fit twice before the deadline", beats(lease.Heartbeat{Timeout: time.Second, Interval: 426 * time.Millisecond}))
	open("heartbeats: an interval of −1 ns", beats(lease.Heartbeat{Timeout: time.Second, Interval: -1}))
	open("heartbeats: a margin of −1 ns", beats(lease.Heartbeat{Timeout: time.Second, Margin: -1}))
	open("heartbeats: a margin that leaves no room for two beats", beats(lease.Heartbeat{Timeout: time.Second, Margin: 501 * time.Millisecond}))
	open("heartbeats: an interval and no timeout", beats(lease.Heartbeat{Interval: time.Second}))
	open("heartbeats of a lease that is `Shared`", func(cfg *lease.Config) { cfg.Heartbeat.Timeout, cfg.Shared = time.Second, true })
	open("a `Liveness` that `NewLiveness` has not made", func(cfg *lease.Config) { cfg.Liveness = &lease.Liveness{} })
	open("a `Liveness` that must beat every 0 s", func(cfg *lease.Config) { cfg.Liveness = lease.NewLiveness(0) })
	s.rows = append(s.rows,
		row{tried: "no context", op: "open session", want: errInvalid, try: func() error { return second(lease.Open(absent, lease.Config{Lease: st.Client})) }},
		row{tried: "a context that has ended", op: "open session", want: []error{context.Canceled}, try: func() error {
			return second(lease.Open(over, lease.Config{Lease: st.Client}))
		}},
		row{tried: "`Resume`: no context", op: "resume session", want: errInvalid, try: func() error {
			return second(lease.Resume(absent, lease.Config{Lease: st.Client}, session.ID()))
		}},
		row{tried: "`Resume`: no client", op: "resume session", want: errInvalid, try: func() error {
			return second(lease.Resume(st.Ctx, lease.Config{}, session.ID()))
		}},
		row{tried: "`Resume`: lease 0", op: "resume session", want: errInvalid, try: func() error {
			return second(lease.Resume(st.Ctx, lease.Config{Lease: st.Client}, 0))
		}},
		row{tried: "`Resume`: a negative lease", op: "resume session", want: errInvalid, try: func() error {
			return second(lease.Resume(st.Ctx, lease.Config{Lease: st.Client}, -5))
		}},
		row{tried: "`Resume`: a lease that does not exist", op: "resume session", want: []error{eldest.ErrSessionLost}, try: func() error {
			return second(lease.Resume(st.Ctx, lease.Config{Lease: st.Client}, gone.ID))
		}},
	)
	for _, ttl := range []struct {
		what string
		ttl  time.Duration
		want time.Duration
	}{
		{"TTL 1 s, below the server's minimum", time.Second, 2 * time.Second},
		{"TTL 1 ns", 1, 2 * time.Second},
		{"TTL 2.1 s", 2100 * time.Millisecond, 3 * time.Second},
		{"TTL 0", 0, lease.DefaultTTL},
	} {
		var granted time.Duration
		s.rows = append(s.rows, row{tried: ttl.what, sent: 1, try: func() error {
			got, err := lease.Open(st.Ctx, lease.Config{Lease: st.Client, Options: lease.Options{TTL: ttl.ttl}})
			if err == nil {
				granted = got.TTL()
				got.Abandon() // so that nothing more is sent
			}
			return err
		}, after: func(t *testing.T) { require.Equal(t, ttl.want, granted) }, result: func() string {
			return fmt.Sprintf("a session whose `TTL()` is %v", granted)
		}})
	}
	s.rows = append(s.rows,
		row{tried: "margin 1 s and TTL 1 s, of which the server makes 2 s", op: "open session", want: errInvalid, try: func() error {
			return second(lease.Open(st.Ctx, lease.Config{Lease: st.Client, Options: lease.Options{TTL: time.Second, Margin: time.Second}}))
		}},
		row{tried: "`Close`: no context", op: "close session", want: errInvalid, try: func() error { return session.Close(absent) }},
		row{tried: "`Close` twice", try: func() error { return closed.Close(st.Ctx) }},
		row{tried: "`Close` after `Abandon`", try: func() error { return abandoned.Close(st.Ctx) }},
		row{tried: "`Abandon` after `Close`", try: func() error { closed.Abandon(); return nil }},
		row{tried: "`Holds` after `Close`", try: func() error {
			if closed.Holds(0) || closed.Holds(-time.Hour) {
				return fmt.Errorf("it holds")
			}
			return nil
		}, result: func() string { return "false" }},
		row{tried: "`Open` with a client that was closed", op: "open session", want: []error{eldest.ErrClosed}, try: func() error {
			cli, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints()})
			require.NoError(t, err)
			require.NoError(t, cli.Close())
			return second(lease.Open(st.Ctx, lease.Config{Lease: cli}))
		}},
	)
	return s
}
