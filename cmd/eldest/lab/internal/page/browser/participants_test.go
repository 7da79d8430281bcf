package browser_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// runs reports whether a process runs, and whether it is stopped.
func runs(pid int) (running, stopped bool) {
	state, _, ok := clitest.Stat(pid)
	return ok, state == 'T'
}

func testResignAndLeave(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest, feed.Eldest)
	before, since := l.placeOf("p1"), l.seq()
	u.act(feed.Resign, "p1")
	l.acted(since, feed.Resign)
	l.eventually("p1 is the last", func() bool { return equal(l.order(), []string{"p2", "p3", "p1"}) })
	require.True(t, l.gone(before))
	won := l.await(since, "p2 leads", func(e feed.Event) bool { return reported(e, "p2", "won") })
	require.Equal(t, l.placeOf("p2").Create, won.Report.Token)
	u.showsTheQueueOf(l)

	pid := l.participant("p2").Pid
	since = l.seq()
	u.act(feed.Leave, "p2")
	l.acted(since, feed.Leave)
	l.eventually("p2 has left", func() bool { return equal(l.order(), []string{"p3", "p1"}) })
	l.eventually("its process has ended", func() bool { running, _ := runs(pid); return !running })
	l.lives("p2", feed.Left)
	u.showsTheQueueOf(l)
	u.until("it has no card any more", `document.querySelectorAll(".card").length === 2`)
}

func testStopAndContinue(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	pid, since := l.participant("p2").Pid, l.seq()
	u.act(feed.Stop, "p2")
	l.acted(since, feed.Stop)
	_, stopped := runs(pid)
	require.True(t, stopped)
	l.lives("p2", feed.Stopped)
	since = l.seq()
	u.act(feed.Continue, "p2")
	l.acted(since, feed.Continue)
	running, stopped := runs(pid)
	require.True(t, running && !stopped)
	l.lives("p2", feed.Running)
}

func testCutDelayHealLoseReply(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	for way, isCut := range map[string]func(feed.MessageState) bool{
		"both":     func(feed.MessageState) bool { return true },
		"requests": func(m feed.MessageState) bool { return m.Kind == "request" },
		"replies":  func(m feed.MessageState) bool { return m.Kind != "request" },
	} {
		since := l.seq()
		u.cut("p2", way)
		cut := l.acted(since, feed.Cut)
		require.Equal(t, way, cut.Action.Way)
		l.becomes("p2", "is cut off", func(p feed.ParticipantState) bool { return p.Cut == way })
		l.await(cut.Seq, "a message of p2 is lost: "+way, func(e feed.Event) bool {
			if e.Type != feed.Lost {
				return false
			}
			sent, ok := l.sent[e.Message.ID]
			return ok && sent.Who == "p2" && sent.Seq > cut.Seq && isCut(*sent.Message)
		})

		since = l.seq()
		u.act(feed.Heal, "p2")
		healed := l.acted(since, feed.Heal)
		l.becomes("p2", "is healed", func(p feed.ParticipantState) bool { return p.Cut == "" })
		l.message(healed.Seq, feed.Delivered, "p2", "")
	}

	since := l.seq()
	u.delay("p1", 300)
	delayed := l.acted(since, feed.Delay)
	l.becomes("p1", "is slow", func(p feed.ParticipantState) bool { return p.DelayMS == 300 })
	arrived := l.await(delayed.Seq, "a message of p1 is late", func(e feed.Event) bool {
		if e.Type != feed.Delivered {
			return false
		}
		sent, ok := l.sent[e.Message.ID]
		return ok && sent.Who == "p1" && sent.Seq > delayed.Seq
	})
	require.GreaterOrEqual(t, arrived.AtMS-l.messageOf(arrived).AtMS, 290.0, "it arrives so much later")
	since = l.seq()
	u.delay("p1", 0)
	l.acted(since, feed.Delay)
	l.becomes("p1", "is fast again", func(p feed.ParticipantState) bool { return p.DelayMS == 0 })

	since = l.seq()
	u.act(feed.LoseReply, "p1")
	l.acted(since, feed.LoseReply)
	l.await(since, "a reply is lost", func(e feed.Event) bool {
		if e.Type != feed.Lost {
			return false
		}
		sent, ok := l.sent[e.Message.ID]
		return ok && sent.Who == "p1" && sent.Seq > since && sent.Message.Kind != "request"
	})
	l.becomes("p1", "loses no other reply", func(p feed.ParticipantState) bool { return !p.LoseReply })
}

func testOperatorDeletesRevokesAndTransfers(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest, feed.Eldest)
	before, since := l.placeOf("p1"), l.seq()
	u.act(feed.DeleteKey, "p1")
	l.acted(since, feed.DeleteKey)
	require.True(t, l.gone(before))
	l.eventually("p1 is queued again", func() bool { return equal(l.order(), []string{"p2", "p3", "p1"}) })

	before, since = l.placeOf("p2"), l.seq()
	u.act(feed.RevokeLease, "p2")
	l.acted(since, feed.RevokeLease)
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	left, err := l.etcd.TimeToLive(ctx, clientv3.LeaseID(before.Lease))
	require.NoError(t, err)
	require.EqualValues(t, -1, left.TTL, "the lease does not exist")
	l.eventually("p2 is queued again", func() bool { return equal(l.order(), []string{"p3", "p1", "p2"}) })

	l.await(since, "p3 leads", func(e feed.Event) bool { return reported(e, "p3", "won") })
	since = l.seq()
	u.act(feed.Transfer, "p1")
	l.acted(since, feed.Transfer)
	l.eventually("p1 leads", func() bool { return l.leader() == "p1" })
	l.await(since, "p1 has won", func(e feed.Event) bool { return reported(e, "p1", "won") })
	u.showsTheQueueOf(l)
}

// Each kind of participant can be added, with and without a rule, and a rule can be taken out and put
// back.
func testKindsAndRules(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest)
	n := 1
	added := func(kind feed.Kind, rule string) {
		since := l.seq()
		u.add(kind, rule)
		l.acted(since, feed.Add)
		n++
		who := participantName(n - 1)
		l.eventually(who+" is queued", func() bool { return slices.Contains(l.order(), who) })
		l.lives(who, feed.Running)
		p := l.participant(who)
		require.Equal(t, []any{kind, rule}, []any{p.Kind, p.Rule})
	}
	for _, kind := range l.info.Kinds {
		added(kind, "")
	}
	require.NotEmpty(t, l.info.Rules)
	for _, rule := range l.info.Rules {
		added(rule.Kinds[0], rule.Name)
	}

	rule := l.info.Rules[0]
	for i, name := range []string{rule.Name, ""} {
		since := l.seq()
		u.rule("p2", name)
		l.acted(since, feed.SetRule)
		l.becomes("p2", "was restarted", func(p feed.ParticipantState) bool {
			return p.Rule == name && p.Lives == i+2 && p.Life == feed.Running
		})
		u.until("the page shows it", fmt.Sprintf("Boolean(document.querySelector(%s)) === %t", js(card("p2", `[data-fault="rule"]`)), name != ""))
	}
}
