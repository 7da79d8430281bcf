package browser_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// keepAliveAnswer is the kind of the answer to a renewal.
const keepAliveAnswer = "LeaseKeepAlive answer"

// The participants are of etcd's package: its renewals wait, and are not given up after a timeout.
func testHoldReleaseDrop(t *testing.T, l *lab) {
	u := begin(l, feed.Concurrency, feed.Concurrency)
	since := l.seq()
	u.act(feed.Hold, "p2")
	l.acted(since, feed.Hold)
	l.becomes("p2", "holds its messages", func(p feed.ParticipantState) bool { return p.Hold })

	// Of the renewals of its lease there is always one.
	m := l.message(since, feed.Held, "p2", "")
	u.until("it waits in the page", isHeld(m.ID))
	_, arrived := l.find(since, func(e feed.Event) bool { return arrives(e, m.ID) })
	require.False(t, arrived)
	u.decide(feed.Release, m.ID)
	l.acted(since, feed.Release)
	end := l.await(since, "it arrives", func(e feed.Event) bool { return arrives(e, m.ID) })
	require.Equal(t, feed.Delivered, end.Type)
	u.until("it waits no more", "!"+isHeld(m.ID))

	// The next one may be held before the page shows all that: those behind it are held after it.
	next := end.Seq
	m = l.message(next, feed.Held, "p2", "")
	u.until("another one waits", isHeld(m.ID))
	u.decide(feed.Drop, m.ID)
	l.acted(next, feed.Drop)
	require.Equal(t, feed.Lost, l.await(next, "it is lost", func(e feed.Event) bool { return arrives(e, m.ID) }).Type)

	next = l.seq()
	u.act(feed.Unhold, "p2")
	unheld := l.acted(next, feed.Unhold)
	l.becomes("p2", "holds nothing", func(p feed.ParticipantState) bool { return !p.Hold })
	u.until("nothing waits", `document.querySelector("#held").dataset.held === "0"`)
	l.message(unheld.Seq, feed.Delivered, "p2", "")
	_, again := l.find(unheld.Seq, func(e feed.Event) bool { return e.Type == feed.Held })
	require.False(t, again)
}

// A candidate of Eldest gives an attempt up. Its held message is shown for some time after that, and
// cannot be released any more.
func testHeldMessageIsGivenUp(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest)
	since := l.seq()
	u.breakpoint("p1", keepAliveAnswer)
	m := l.message(since, feed.Held, "p1", keepAliveAnswer)
	u.until("it waits in the page", isHeld(m.ID))
	require.Equal(t, feed.Lost, l.await(since, "it is given up", func(e feed.Event) bool { return arrives(e, m.ID) }).Type)
	const gone = `document.querySelector(".held-gone")?.innerText.includes("given up by p1")`
	u.until("the page says so", gone+" && !"+isHeld(m.ID))
	require.Zero(t, eval[int](u.tab, `document.querySelectorAll(".held-gone button").length`))
	u.act(feed.Unhold, "p1")
	u.until("after some seconds it is not shown any more", `!document.querySelector(".held-gone")`)
}

// arrives reports whether an event is the end of a message: it was delivered, or lost.
func arrives(e feed.Event, id int64) bool {
	return (e.Type == feed.Delivered || e.Type == feed.Lost) && e.Message.ID == id
}

// A breakpoint holds messages of its kind, and no others. All that wait can be released at once, and
// a row of the list has keys of its own.
func testBreakpoints(t *testing.T, l *lab) {
	u := begin(l, feed.Concurrency, feed.Concurrency)
	since := l.seq()
	u.breakpoint("p1", keepAliveAnswer)
	l.acted(since, feed.Breakpoint)
	l.becomes("p1", "has a breakpoint", func(p feed.ParticipantState) bool { return equal(p.Breakpoints, []string{keepAliveAnswer}) })
	m := l.message(since, feed.Held, "p1", keepAliveAnswer)
	u.until("it waits in the page", isHeld(m.ID))
	u.click(button("release-all"))
	next := l.await(since, "it arrives", func(e feed.Event) bool { return e.Type == feed.Delivered && e.Message.ID == m.ID }).Seq
	m = l.message(next, feed.Held, "p1", keepAliveAnswer)
	u.until("another one waits", isHeld(m.ID))
	require.True(t, eval[bool](u.tab, "("+isHeld(m.ID)+".focus(), true)"))
	u.press("r")
	l.await(next, "it arrives", func(e feed.Event) bool { return e.Type == feed.Delivered && e.Message.ID == m.ID })
	u.until("the focus stays in the list, or goes to its heading", `document.activeElement.closest("#held")`)

	next = l.seq()
	u.breakpoint("p1", keepAliveAnswer)
	off := l.acted(next, feed.Breakpoint)
	l.becomes("p1", "has no breakpoint", func(p feed.ParticipantState) bool { return len(p.Breakpoints) == 0 })
	time.Sleep(soon)
	_, held := l.find(off.Seq, func(e feed.Event) bool { return e.Type == feed.Held })
	require.False(t, held)
	_, other := l.find(since, func(e feed.Event) bool {
		return e.Type == feed.Held && kindOf(*l.sent[e.Message.ID].Message) != keepAliveAnswer
	})
	require.False(t, other, "a message of another kind was held")
}
