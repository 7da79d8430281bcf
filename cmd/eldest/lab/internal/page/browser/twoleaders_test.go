package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// holdARenewal does what the lessons ask for. It holds the answer to a renewal of p1, so that p1 has
// not read that its lease was renewed, lets no more renewals pass, and releases the answer two
// seconds later. Then it waits until p2 leads.
func (u ui) holdARenewal(l *lab) {
	u.t.Helper()
	since := l.seq()
	u.breakpoint("p1", keepAliveAnswer)
	m := l.message(since, feed.Held, "p1", keepAliveAnswer)
	u.act(feed.Hold, "p1")
	l.acted(since, feed.Hold)
	time.Sleep(2 * time.Second)
	// p1 may have given up the attempt of which this is the answer: then nothing is to be released.
	if eval[bool](u.tab, "Boolean("+isHeld(m.ID)+")") {
		u.decide(feed.Release, m.ID)
	}
	l.await(since, "p2 leads", func(e feed.Event) bool { return reported(e, "p2", "won") })
}

// With etcd's own package a reader makes two leaders by hand, and the page says so.
func testTwoLeadersOfEtcdsPackageByHand(t *testing.T, l *lab) {
	u := begin(l, feed.Concurrency, feed.Concurrency)
	require.False(t, eval[bool](u.tab, twoLeaders))
	u.holdARenewal(l)
	u.until("it warns of two leaders", twoLeaders)
	text := u.text("#overlap")
	require.Contains(t, text, "p1 and p2")
	require.Contains(t, text, "With Eldest and all its rules this does not happen.")
	u.until("the overlap is in the timeline", `eldest.state.overlaps.some((o) => o.a === "p1" && o.b === "p2" && o.to > o.from)`)
	u.click(button("show-overlap"))
	u.until("the timeline stays there", `document.querySelector("#lanes").dataset.follow === "false"`)
	u.click(button("dismiss-overlap"))
	u.until("the warning is hidden", "!("+twoLeaders+")")
}

// With Eldest the same makes none: p1 has stopped before p2 leads.
func testNoTwoLeadersOfEldestByHand(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	begun := l.seq()
	u.holdARenewal(l)
	won, _ := l.find(begun, func(e feed.Event) bool { return reported(e, "p2", "won") })
	ended, _ := l.find(begun, func(e feed.Event) bool { return reported(e, "p1", "ended") })
	require.NotNil(t, ended.Report, "p1 has not stopped")
	require.Less(t, ended.AtMS, won.AtMS)
	u.never(2*soon, "it warns of two leaders", twoLeaders)
	require.Zero(t, eval[int](u.tab, "eldest.state.overlaps.length"))
}

// The key of a leader is deleted: a leader of etcd's package does not notice, one of Eldest stops.
func testDeletedKeyOfALeader(t *testing.T, l *lab) {
	for _, kind := range []feed.Kind{feed.Concurrency, feed.Eldest} {
		t.Run(string(kind), func(t *testing.T) {
			u := begin(l, kind, kind)
			since := l.seq()
			u.act(feed.DeleteKey, "p1")
			l.acted(since, feed.DeleteKey)
			l.await(since, "p2 leads", func(e feed.Event) bool { return reported(e, "p2", "won") })
			if kind == feed.Concurrency {
				u.until("it warns of two leaders", twoLeaders)
				u.until("both are marked", `document.querySelectorAll('.card[data-believes="true"]').length === 2`)
				return
			}
			u.never(2*soon, "it warns of two leaders", twoLeaders)
			require.True(t, strings.HasPrefix(u.text(".headline"), "p2 leads"), u.text(".headline"))
		})
	}
}
