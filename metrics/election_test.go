package metrics_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
)

// A hand-over between two participants, as shown in a scrape of each.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	a, b := join(t, cli, t.Name()), join(t, cli, t.Name())
	require.Equal(t, "unknown", a.state())
	la, err := a.candidate.Campaign(ctx)
	require.NoError(t, err)
	b.observer(cli)
	place, err := b.candidate.Register(ctx)
	require.NoError(t, err)

	a.becomes("eldest_wins_total", 1)
	require.Equal(t, "leading", a.state())
	b.becomes("eldest_queue_length", 2)
	// The other hooks have queues of their own.
	b.becomes("eldest_session_ttl_seconds", ttl.Seconds())
	b.becomes("eldest_campaigns_total", 1)
	b.becomes(`eldest_state{state="following"}`, 1)
	require.Equal(t, "following", b.state())
	now := scrape(t, b.registry)
	require.Equal(t, float64(place.Token), now["eldest_token"])
	require.Equal(t, float64(la.Token()), now["eldest_leader_token"])
	require.Equal(t, ttl.Seconds(), now["eldest_session_ttl_seconds"])
	require.Positive(t, now["eldest_session_remaining_seconds"])
	require.LessOrEqual(t, now["eldest_session_remaining_seconds"], ttl.Seconds())
	require.Equal(t, 1.0, now["eldest_observers"])
	require.Equal(t, 1.0, now["eldest_campaigns_total"])

	won := make(chan error, 1)
	go func() {
		_, err := b.candidate.Await(ctx)
		won <- err
	}()
	require.Contains(t, scrape(t, b.registry), `eldest_watch_restarts_total{watch="candidate"}`)
	require.NoError(t, la.Resign(ctx))
	require.NoError(t, <-won)
	require.Equal(t, "unknown", a.state())
	require.Equal(t, "leading", b.state())
	a.becomes(`eldest_tenures_ended_total{cause="resigned"}`, 1)
	b.becomes("eldest_wins_total", 1)
	b.becomes("eldest_handover_wait_seconds", 1)
	b.becomes("eldest_handover_proof_seconds", 1)
	require.Zero(t, scrape(t, a.registry)["eldest_handover_proof_seconds"], "a waited for nobody")
	b.becomes("eldest_leader_token", float64(place.Token))
	b.reaches("eldest_renewal_latency_seconds", 2)
	b.reaches("eldest_renewal_slack_ratio", 2)

	require.NoError(t, etcdtest.Err(cli.Delete(ctx, b.candidate.Key())))
	b.becomes(`eldest_tenures_ended_total{cause="deposed"}`, 1)
	require.Equal(t, "unknown", b.state())
	require.NoError(t, b.session.Close(ctx))
	b.becomes(`eldest_sessions_ended_total{cause="closed"}`, 1)
	require.Zero(t, scrape(t, b.registry)["eldest_session_remaining_seconds"])
}

// A tenure that was requested to end has drained, whatever happened to its key after that; no alert
// counts it as a loss.
func TestDrainedTenure(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name())
	l, err := p.candidate.Campaign(ctx)
	require.NoError(t, err)
	l.Drain(nil)
	require.NoError(t, etcdtest.Err(cli.Delete(ctx, p.candidate.Key())))
	p.becomes(`eldest_tenures_ended_total{cause="drained"}`, 1)
	require.Zero(t, scrape(t, p.registry)[`eldest_tenures_ended_total{cause="deposed"}`])
}

// A tenure that is suspended and resumed is one tenure, and counts once.
//
// The test fails if a suspension counts as an end, a resumption as a win, or the suspended
// candidate as a follower.
func TestSuspendedTenure(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	ctx, cli := etcdtest.Context(t), cluster.Client(t)
	const silence = 3 * time.Second // so that a busy machine alone suspends nobody
	beating := func(cfg *lease.Config) {
		cfg.TTL, cfg.Heartbeat = time.Minute, lease.Heartbeat{Timeout: silence, Interval: 250 * time.Millisecond}
	}
	a, b := join(t, cli, t.Name(), beating), join(t, cli, t.Name(), beating)
	l, err := a.candidate.Campaign(ctx)
	require.NoError(t, err)
	require.Positive(t, scrape(t, a.registry)["eldest_leadership_remaining_seconds"])
	require.Less(t, scrape(t, a.registry)["eldest_leadership_remaining_seconds"], silence.Seconds())
	a.reaches("eldest_heartbeat_latency_seconds", 3)
	won := make(chan error, 1)
	go func() {
		_, err := b.candidate.Campaign(ctx)
		won <- err
	}()
	require.NoError(t, cluster.Member(0).Stop())
	<-l.Done()
	require.Equal(t, "unknown", a.state())
	require.Zero(t, scrape(t, a.registry)["eldest_leadership_remaining_seconds"])
	a.reaches("eldest_heartbeats_failed_total", 1)
	require.NoError(t, cluster.Member(0).Cont())
	require.NoError(t, etcdtest.Err(a.candidate.Await(ctx)))
	a.reaches("eldest_suspensions_total", 1)
	now := scrape(t, a.registry)
	require.Equal(t, 1.0, now["eldest_wins_total"])
	require.Equal(t, 1.0, now["eldest_handover_wait_seconds"])
	require.Zero(t, now[`eldest_tenures_ended_total{cause="suspended"}`])

	a.session.Abandon()
	require.NoError(t, <-won)
	b.becomes("eldest_evictions_total", 1)
	a.becomes(`eldest_tenures_ended_total{cause="closed"}`, 1)
	require.Zero(t, scrape(t, b.registry)["eldest_heartbeats_refused"])
}

// A waiter that withdraws ends a candidacy, not a tenure.
func TestWithdrawnCandidacy(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name())
	require.NoError(t, etcdtest.Err(p.candidate.Register(ctx)))
	require.NoError(t, p.candidate.Withdraw(ctx))
	p.becomes(`eldest_candidacies_ended_total{cause="withdrawn"}`, 1)
	require.Zero(t, scrape(t, p.registry)[`eldest_tenures_ended_total{cause="withdrawn"}`])
}

// A scrape shows the state at the time of the scrape: past the deadline the participant does not
// lead and no time is left, although no timer has fired and no hook can run.
func TestScrapeReadsTheClock(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	clock := etcdtest.NewClock()
	release, blocked := make(chan struct{}), make(chan struct{})
	p := join(t, cli, t.Name(), func(cfg *lease.Config) {
		cfg.Clock, cfg.TTL = clock, 60*time.Second
		// No renewal during the test: it would correct the clock's jump.
		cfg.Renewal = func(time.Duration) lease.Renewal { return lease.Renewal{Every: 50 * time.Second, Timeout: time.Second} }
		cfg.Hooks = hooks.Tee(cfg.Hooks, lease.Hooks{Opened: func(lease.OpenedEvent) { close(blocked); <-release }})
	})
	defer close(release)
	<-blocked
	require.NoError(t, etcdtest.Err(p.candidate.Campaign(ctx)))
	p.becomes("eldest_wins_total", 1)
	before := scrape(t, p.registry)["eldest_session_remaining_seconds"]
	require.Greater(t, before, 40.0)
	clock.Jump(10 * time.Second)
	require.InDelta(t, before-10, scrape(t, p.registry)["eldest_session_remaining_seconds"], 5)
	require.Equal(t, "leading", p.state())
	clock.Jump(61 * time.Second)
	require.Equal(t, "unknown", p.state())
	now := scrape(t, p.registry)
	require.Zero(t, now["eldest_session_remaining_seconds"])
	require.Zero(t, now["eldest_token"])
	require.Zero(t, now[`eldest_sessions_ended_total{cause="session_lost"}`], "the hook that says so waits behind the one that blocks")
}

// If an earlier hook blocks, the scrape is correct after AttachCandidate.
func TestAttachedCandidateNeedsNoHooks(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name(), func(cfg *lease.Config) { cfg.Hooks = lease.Hooks{} })
	deaf := &participant{Election: metrics.New(t.Name()), t: t, registry: prometheus.NewPedanticRegistry()}
	deaf.registry.MustRegister(deaf.Election)
	l, err := p.candidate.Campaign(ctx)
	require.NoError(t, err)
	require.Equal(t, "unknown", deaf.state())
	deaf.AttachCandidate(p.session, p.candidate)
	require.Equal(t, "leading", deaf.state())
	require.Positive(t, scrape(t, deaf.registry)["eldest_session_remaining_seconds"])
	require.NoError(t, l.Resign(ctx))
	require.Equal(t, "unknown", deaf.state())
}

// Hooks of a session and a candidate that have ended may run after those of the next ones: the gauges
// stay those of the next ones, and dropped calls count once.
//
// Fails if a late hook attaches what has ended.
func TestLateHooksOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	first := join(t, cli, t.Name(), func(cfg *lease.Config) { cfg.Hooks = lease.Hooks{} })
	require.NoError(t, etcdtest.Err(first.candidate.Register(ctx)))
	require.NoError(t, first.session.Close(ctx))
	p := join(t, cli, t.Name())
	p.AttachCandidate(p.session, p.candidate)
	l, err := p.candidate.Campaign(ctx)
	require.NoError(t, err)
	p.becomes("eldest_wins_total", 1)
	p.becomes("eldest_sessions_total", 1)
	p.Hooks().Session.Heartbeat(lease.HeartbeatEvent{Err: context.DeadlineExceeded, NotPermitted: true})

	p.Hooks().Session.Opened(lease.OpenedEvent{Session: first.session})
	p.Hooks().Candidate.Registered(election.RegisteredEvent{Candidate: first.candidate})
	require.Equal(t, "leading", p.state())
	now := scrape(t, p.registry)
	require.Equal(t, float64(l.Token()), now["eldest_token"])
	require.Positive(t, now["eldest_session_remaining_seconds"])
	require.Equal(t, 1.0, now["eldest_heartbeats_refused"])
	require.Equal(t, 2.0, now["eldest_sessions_total"], "it counts")
}

// A drained tenure has ended, and its candidate follows nobody.
func TestDrainedCandidateFollowsNobody(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name())
	l, err := p.candidate.Campaign(ctx)
	require.NoError(t, err)
	p.becomes("eldest_wins_total", 1)
	l.Drain(nil)
	require.Equal(t, "unknown", p.state())
	require.Equal(t, float64(l.Token()), scrape(t, p.registry)["eldest_token"], "the key is kept")
}

// prompt is a lease client whose renewals succeed at once, without etcd.
type prompt struct{ clientv3.Lease }

func (prompt) KeepAliveOnce(_ context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return &clientv3.LeaseKeepAliveResponse{ID: id, TTL: int64(ttl / time.Second)}, nil
}

// Dropped calls are counted while the hook still blocks, and stay counted with the next session.
func TestDroppedHooksAreCounted(t *testing.T) {
	t.Parallel()
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	release := make(chan struct{})
	p := join(t, cli, t.Name(), func(cfg *lease.Config) {
		cfg.Hooks = hooks.Tee(cfg.Hooks, lease.Hooks{Opened: func(lease.OpenedEvent) { <-release }})
		cfg.Lease, cfg.Majority = prompt{cli}, lease.Unconfirmed{}
		cfg.Renewal = func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: 100 * time.Microsecond, Timeout: 500 * time.Millisecond}
		}
	})
	require.Eventually(t, func() bool { return scrape(t, p.registry)["eldest_hooks_dropped_total"] > 10 }, etcdtest.Patience, 10*time.Millisecond)
	p.session.Abandon()
	close(release)
	dropped := float64(p.session.Dropped())
	p.becomes(`eldest_sessions_ended_total{cause="closed"}`, 0) // the call for the end was dropped as well
	next, err := lease.Open(ctx, lease.Config{Lease: cli, Options: lease.Options{TTL: ttl, Hooks: p.Hooks().Session}})
	require.NoError(t, err)
	p.becomes("eldest_sessions_total", 2)
	require.Equal(t, dropped, scrape(t, p.registry)["eldest_hooks_dropped_total"])
	require.NoError(t, next.Close(ctx))
}

// The state of an attached node comes from the node: unknown, while its lead function drains and
// its key still exists.
func TestAttachedElector(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	numbers := metrics.New(t.Name())
	p := &participant{Election: numbers, t: t, registry: prometheus.NewPedanticRegistry()}
	p.registry.MustRegister(numbers)
	cfg := elector.Config{Election: t.Name(), NodeID: "n1", Source: elector.Always(elector.Client(cli))}
	cfg.Session = lease.Options{TTL: ttl, Hooks: numbers.Hooks().Session}
	cfg.Candidate.Hooks, cfg.Observer.Hooks = numbers.Hooks().Candidate, numbers.Hooks().Observer
	e, err := elector.New(cfg)
	require.NoError(t, err)
	numbers.Attach(e)
	require.Equal(t, "unknown", p.state())
	leading, draining, drained := make(chan struct{}), make(chan struct{}), make(chan struct{})
	running, stop := context.WithCancel(ctx)
	done := etcdtest.Go(func() error {
		return e.Run(running, func(ctx context.Context, _ *elector.Leadership) error {
			close(leading)
			<-ctx.Done()
			close(draining)
			<-drained
			return nil
		})
	})
	select {
	case <-leading:
	case err := <-done:
		require.FailNow(t, "it does not lead", "%v", err)
	}
	require.Equal(t, "leading", p.state())
	_, token, _ := e.Status().Own()
	p.becomes("eldest_leader_token", float64(token))
	stop()
	<-draining
	p.becomes(`eldest_state{state="unknown"}`, 1)
	require.Equal(t, float64(token), scrape(t, p.registry)["eldest_token"], "the key is kept meanwhile")
	close(drained)
	require.ErrorIs(t, <-done, context.Canceled)
	p.becomes(`eldest_sessions_ended_total{cause="closed"}`, 1)
	p.becomes("eldest_observers", 0)
	require.Zero(t, scrape(t, p.registry)["eldest_token"])
}

// A session that is forfeited is lost, also if the reason is that something was closed; hooks.Cause says
// the same.
func TestForfeitedSession(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name())
	p.session.Forfeit(fmt.Errorf("%w: what the leader writes to", eldest.ErrClosed))
	p.becomes(`eldest_sessions_ended_total{cause="session_lost"}`, 1)
	require.Zero(t, scrape(t, p.registry)[`eldest_sessions_ended_total{cause="closed"}`])
}

// Slack is a part of the TTL: the bucket that the alert uses is a third of any TTL.
func TestSlackIsARatio(t *testing.T) {
	numbers, registry := metrics.New("e"), prometheus.NewPedanticRegistry()
	registry.MustRegister(numbers)
	renewed := numbers.Hooks().Session.Renewed
	renewed(lease.RenewedEvent{Slack: 19 * time.Second, TTL: 60 * time.Second})
	renewed(lease.RenewedEvent{Slack: 39 * time.Second, TTL: 60 * time.Second})
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, bucket := range named(families, "eldest_renewal_slack_ratio").GetMetric()[0].GetHistogram().GetBucket() {
		want := map[bool]uint64{true: 1}[bucket.GetUpperBound() >= 19.0/60] + map[bool]uint64{true: 1}[bucket.GetUpperBound() >= 39.0/60]
		require.Equal(t, want, bucket.GetCumulativeCount(), bucket.GetUpperBound())
	}
}

// Scrapes and hooks can run concurrently.
func TestCollectConcurrentSafe(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, t.Name())
	scraping, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for scraping.Err() == nil {
				if _, err := p.registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		o := p.observer(cli)
		o.Subscribe()
		l, err := p.candidate.Campaign(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Resign(ctx))
		o.Close()
	}
	stop()
	all.Wait()
	p.becomes("eldest_wins_total", 20)
	p.becomes("eldest_observer_subscriptions_total", 20)
	p.becomes("eldest_observers", 0)
}
