package traces_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/traces"
)

// stand opens a session and makes a candidate whose campaigns r records.
func stand(t *testing.T, r *recorder) *election.Candidate {
	t.Helper()
	cli := etcdtest.Shared(t).Client(t)
	told := traces.Hooks(r, t.Name())
	return electiontest.Join(t, cli, t.Name(), func(l *lease.Config, e *election.Config) {
		l.TTL, l.Hooks, e.Hooks = ttl, told.Session, told.Candidate
	}).Candidate
}

// A hand-over with a real etcd: the campaign and the tenure of the candidate that waited.
func TestSpansOfACampaign(t *testing.T) {
	ctx := etcdtest.Context(t)
	first, r := newRecorder(t), newRecorder(t)
	a, b := stand(t, first), stand(t, r)
	la, err := a.Campaign(ctx)
	require.NoError(t, err)
	place, err := b.Register(ctx)
	require.NoError(t, err)
	won := make(chan *election.Leadership, 1)
	go func() {
		l, err := b.Await(ctx)
		if err != nil {
			t.Error(err)
		}
		won <- l
	}()
	require.Empty(t, r.GetSpans(), "nothing has ended yet")
	require.NoError(t, la.Resign(ctx))
	lb := <-won
	require.NotNil(t, lb)

	campaign := r.ended("eldest.campaign", 1)[0]
	require.Equal(t, []string{"registered", "waiting", "won"}, events(campaign))
	require.Equal(t, t.Name(), attr(campaign.Attributes, "eldest.election"))
	require.Equal(t, int64(place.Token), attr(campaign.Attributes, "eldest.token"))
	require.Equal(t, b.Key(), attr(campaign.Attributes, "eldest.key"))
	require.Equal(t, a.Key(), attr(campaign.Attributes, "eldest.predecessor"))
	require.Equal(t, int64(2), attr(campaign.Attributes, "eldest.queue"))
	require.Equal(t, a.Key(), attr(campaign.Events[1].Attributes, "eldest.predecessor"))
	require.Positive(t, attr(campaign.Events[2].Attributes, "eldest.proof_seconds"))
	require.Equal(t, codes.Unset, campaign.Status.Code)
	require.Equal(t, campaign.EndTime, campaign.Events[2].Time, "it ends when the win was decided, not when the hook ran")
	require.False(t, campaign.Parent.IsValid())

	require.NoError(t, lb.Resign(ctx))
	tenure := r.ended("eldest.tenure", 1)[0]
	require.Equal(t, []string{"ended"}, events(tenure))
	require.Equal(t, campaign.SpanContext.TraceID(), tenure.SpanContext.TraceID())
	require.Equal(t, campaign.SpanContext.SpanID(), tenure.Parent.SpanID())
	require.Equal(t, campaign.EndTime, tenure.StartTime)
	require.Equal(t, int64(place.Token), attr(tenure.Attributes, "eldest.token"))
	require.Equal(t, "resigned", attr(tenure.Events[0].Attributes, "eldest.cause"))
	require.Contains(t, attr(tenure.Events[0].Attributes, "eldest.error"), eldest.ErrResigned.Error())
	require.Equal(t, codes.Unset, tenure.Status.Code, "it was given up")
	require.NotEqual(t, campaign.SpanContext.TraceID(), first.ended("eldest.tenure", 1)[0].SpanContext.TraceID())
}

// An end that was not requested is an error: here a key that was deleted by hand.
func TestSpanOfADeposedLeader(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	c := stand(t, r)
	l, err := c.Campaign(ctx)
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(etcdtest.Shared(t).Client(t).Delete(ctx, c.Key())))
	<-l.Done()
	tenure := r.ended("eldest.tenure", 1)[0]
	require.Equal(t, codes.Error, tenure.Status.Code)
	require.Equal(t, "deposed", tenure.Status.Description, "the whole text is in the event")
	require.Contains(t, attr(tenure.Events[0].Attributes, "eldest.error"), eldest.ErrDeposed.Error())
}

// The span of a tenure that drained ends with the drain, and not with the key.
func TestSpanOfADrain(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	c := stand(t, r)
	l, err := c.Campaign(ctx)
	require.NoError(t, err)
	l.Drain(nil)
	drained := time.Now()
	require.NoError(t, l.Resign(ctx))
	tenure := r.ended("eldest.tenure", 1)[0]
	require.Equal(t, "drained", attr(tenure.Events[0].Attributes, "eldest.cause"))
	require.Equal(t, codes.Unset, tenure.Status.Code)
	require.False(t, tenure.EndTime.After(drained))
}

// A candidacy without a win has one span, which ends with it.
func TestSpanOfAWithdrawal(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	c := stand(t, r)
	require.NoError(t, etcdtest.Err(c.Register(ctx)))
	require.NoError(t, c.Withdraw(ctx))
	campaign := r.ended("eldest.campaign", 1)[0]
	require.Equal(t, []string{"registered", "ended"}, events(campaign))
	require.Equal(t, codes.Unset, campaign.Status.Code)
	require.Len(t, r.GetSpans(), 1)
}

// Risks of a tenure are events of its span.
func TestDangersAreInTheSpan(t *testing.T) {
	r := newRecorder(t)
	told := traces.Hooks(r, "e")
	now := time.Now()
	told.Candidate.Registered(election.RegisteredEvent{Key: "e/1", Token: 7, At: now})
	told.Candidate.Won(election.WonEvent{Key: "e/1", Token: 7, At: now})
	told.Session.AtRisk(lease.AtRiskEvent{Remaining: 3 * time.Second, Err: fmt.Errorf("asked twice: %w", context.DeadlineExceeded)})
	told.Session.Recovered(lease.RenewedEvent{Slack: time.Second})
	told.Candidate.Interrupted(election.InterruptedEvent{Key: "e/1", Reason: errors.New("reset"), At: now})
	told.Candidate.Ended(election.EndedEvent{Key: "e/1", Token: 7, Led: true, Cause: eldest.ErrSessionLost, At: now.Add(time.Second)})
	tenure := r.ended("eldest.tenure", 1)[0]
	require.Equal(t, []string{"lease at risk", "lease recovered", "watch interrupted", "ended"}, events(tenure))
	require.Equal(t, 3.0, attr(tenure.Events[0].Attributes, "eldest.remaining_seconds"))
	require.Equal(t, "no_answer", attr(tenure.Events[0].Attributes, "eldest.cause"))
	require.Equal(t, "asked twice: context deadline exceeded", attr(tenure.Events[0].Attributes, "eldest.error"))
	require.Equal(t, "session_lost", tenure.Status.Description)
	require.Equal(t, codes.Error, tenure.Status.Code)
	require.Equal(t, time.Second, tenure.EndTime.Sub(tenure.StartTime))
}

// A tenure that is suspended and resumed is one span; an eviction is an event in the span of the
// candidate that evicts.
func TestSuspendedTenureIsOneSpan(t *testing.T) {
	r := newRecorder(t)
	told := traces.Hooks(r, "e")
	now := time.Now()
	told.Candidate.Registered(election.RegisteredEvent{Key: "e/2", Token: 7, At: now})
	told.Candidate.Evicted(election.EvictedEvent{Key: "e/2", Evicted: eldest.Candidate{Key: "e/1"}, Silence: time.Second, At: now})
	told.Candidate.Won(election.WonEvent{Key: "e/2", Token: 7, At: now})
	told.Candidate.Suspended(election.SuspendedEvent{Key: "e/2", Token: 7, Cause: eldest.ErrSuspended, At: now.Add(time.Second)})
	told.Candidate.Won(election.WonEvent{Key: "e/2", Token: 7, Resumed: true, At: now.Add(2 * time.Second)})
	told.Candidate.Ended(election.EndedEvent{Key: "e/2", Token: 7, Led: true, Cause: eldest.ErrResigned, At: now.Add(3 * time.Second)})
	campaign, tenure := r.ended("eldest.campaign", 1)[0], r.ended("eldest.tenure", 1)[0]
	require.Equal(t, []string{"registered", "predecessor evicted", "won"}, events(campaign))
	require.Equal(t, "e/1", attr(campaign.Events[1].Attributes, "eldest.predecessor"))
	require.Equal(t, []string{"suspended", "resumed", "ended"}, events(tenure))
	require.Equal(t, 3*time.Second, tenure.EndTime.Sub(tenure.StartTime))
	require.Equal(t, codes.Unset, tenure.Status.Code)
}

// If the end of a candidacy was not reported, the next one with its token, that of a resumed lease, ends
// its span.
func TestSpanOfAResumedKey(t *testing.T) {
	r := newRecorder(t)
	told := traces.Hooks(r, "e")
	told.Candidate.Registered(election.RegisteredEvent{Token: 7, At: time.Now()})
	told.Candidate.Registered(election.RegisteredEvent{Token: 7, Adopted: true, At: time.Now()})
	forgotten := r.ended("eldest.campaign", 1)[0]
	require.Equal(t, false, attr(forgotten.Attributes, "eldest.adopted"))
	require.Equal(t, codes.Error, forgotten.Status.Code)
	told.Candidate.Ended(election.EndedEvent{Token: 7, Cause: eldest.ErrResigned, At: time.Now()})
	require.Equal(t, true, attr(r.ended("eldest.campaign", 2)[1].Attributes, "eldest.adopted"))
}

// Spans whose end was never reported do not accumulate, and an event without its beginning does no
// harm.
func TestSpansAreNotKeptForever(t *testing.T) {
	r := newRecorder(t)
	told := traces.Hooks(r, "e")
	told.Candidate.Won(election.WonEvent{Token: 1})
	told.Candidate.Ended(election.EndedEvent{Token: 2, Cause: eldest.ErrResigned})
	require.Empty(t, r.GetSpans())
	for token := range eldest.Token(100) {
		told.Candidate.Registered(election.RegisteredEvent{Token: token + 1, At: time.Now()})
	}
	forgotten := r.ended("eldest.campaign", 92)
	require.Equal(t, int64(1), attr(forgotten[0].Attributes, "eldest.token"), "the oldest goes first")
	require.Equal(t, codes.Error, forgotten[0].Status.Code)
}
