package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// Each control asks for its action, and the page shows what has come of it. (That an action that was
// done has had its effect is tested in package sandbox.)
func testControls(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest, feed.Eldest)
	does := func(press func(), want feed.Action, shown string) {
		t.Helper()
		since := l.Seq()
		press()
		require.Equal(t, want, *l.Acted(since, want.Do).Action)
		u.until(fmt.Sprintf("%+v is shown", want), shown)
	}
	is := func(who, name, value string) string {
		return fmt.Sprintf("document.querySelector(%s).dataset.%s === %s", js(card(who, "")), name, js(value))
	}
	chip := func(who, fault string) string {
		return "document.querySelector(" + js(card(who, "[data-fault="+css(fault)+"]")) + ")"
	}
	on := func(do, who, shown string) {
		t.Helper()
		does(func() { u.act(do, who) }, feed.Action{Do: do, On: who}, shown)
	}
	queued := func(names ...string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".queue-list .place")].map((e) => e.dataset.who).join() === %s`, js(strings.Join(names, ",")))
	}

	on(feed.Resign, "p1", queued("p2", "p3", "p1"))
	on(feed.DeleteKey, "p2", queued("p3", "p1", "p2"))
	on(feed.RevokeLease, "p3", queued("p1", "p2", "p3"))
	on(feed.Stop, "p3", is("p3", "life", "stopped"))
	on(feed.Continue, "p3", is("p3", "life", "running"))
	for _, way := range []string{"both", "requests", "replies"} {
		does(func() { u.cut("p3", way) }, feed.Action{Do: feed.Cut, On: "p3", Way: way}, chip("p3", "cut"))
	}
	does(func() { u.delay("p3", 300) }, feed.Action{Do: feed.Delay, On: "p3", MS: 300}, chip("p3", "delay"))
	on(feed.LoseReply, "p3", chip("p3", "lose-reply"))
	on(feed.Heal, "p3", "!"+chip("p3", "cut"))
	on(feed.Hold, "p3", chip("p3", "hold"))
	on(feed.Unhold, "p3", "!"+chip("p3", "hold"))
	point := func() { u.breakpoint("p3", keepAliveAnswer) }
	does(point, feed.Action{Do: feed.Breakpoint, On: "p3", Breakpoints: []string{keepAliveAnswer}}, chip("p3", "breakpoints"))
	does(point, feed.Action{Do: feed.Breakpoint, On: "p3"}, "!"+chip("p3", "breakpoints"))
	on(feed.Transfer, "p2", queued("p2", "p3", "p1"))
	rule := l.info.Rules[0].Name
	does(func() { u.rule("p3", rule) }, feed.Action{Do: feed.SetRule, On: "p3", Rule: rule}, chip("p3", "rule"))
	does(func() { u.rule("p3", "") }, feed.Action{Do: feed.SetRule, On: "p3"}, "!"+chip("p3", "rule"))
	on(feed.Kill, "p3", is("p3", "life", "dead"))
	on(feed.Restart, "p3", is("p3", "lives", "4"))
	on(feed.Leave, "p3", "!document.querySelector("+js(card("p3", ""))+")")
	for i, rule := range l.info.Rules {
		kind := rule.Kinds[len(rule.Kinds)-1]
		does(func() { u.add(kind, rule.Name) }, feed.Action{Do: feed.Add, Kind: kind, Rule: rule.Name}, chip(participantName(3+i), "rule"))
	}
	require.Equal(t, l.info.Kinds, eval[[]feed.Kind](u.tab, `[...document.querySelector('#participants [data-field="kind"]').options].map((o) => o.value)`))

	member := func(do string, i int, states ...string) {
		t.Helper()
		does(func() { u.member(do, i) }, feed.Action{Do: do, Member: i},
			js(states)+fmt.Sprintf(`.includes(document.querySelector('.member[data-member="%d"]').dataset.state)`, i))
	}
	leads := func() int {
		return slices.IndexFunc(l.Members(), func(m feed.MemberState) bool { return m.State == feed.MemberLeads })
	}
	l.eventually("etcd has a leader", func() bool { return leads() >= 0 })
	next := (leads() + 1) % 3
	member(feed.MoveLeader, next, feed.MemberLeads)
	other := (next + 1) % 3
	member(feed.MemberStop, other, feed.MemberStopped)
	member(feed.MemberContinue, other, feed.MemberFollows, feed.MemberLeads)
	member(feed.MemberKill, other, feed.MemberDown)
	member(feed.MemberRestart, other, feed.MemberFollows, feed.MemberLeads)
	does(func() { u.click(button(feed.Compact)) }, feed.Action{Do: feed.Compact}, "true")
}

// keepAliveAnswer is the kind of the answer to a renewal.
const keepAliveAnswer = "LeaseKeepAlive answer"

// arrives reports whether an event is the end of a message: it was delivered, or lost.
func arrives(e feed.Event, id int64) bool {
	return (e.Type == feed.Delivered || e.Type == feed.Lost) && e.Message.ID == id
}

// Held messages wait in the page, and are released or dropped there: with buttons, with keys, or all at
// once. Those of p2 are renewals of etcd's package, which wait, and are not given up after a timeout.
// Eldest's p1 gives an attempt up: its message is shown for some time after that.
func testHeldMessages(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Concurrency)
	since := l.Seq()
	u.breakpoint("p1", keepAliveAnswer)
	m := l.Message(since, feed.Held, "p1", keepAliveAnswer)
	u.until("it waits in the page", isHeld(m.ID))
	require.Equal(t, feed.Lost, l.Await(since, "it is given up", func(e feed.Event) bool { return arrives(e, m.ID) }).Type)
	u.until("the page says so", `document.querySelector(".held-gone")?.innerText.includes("given up by p1") && !`+isHeld(m.ID))
	require.Zero(t, eval[int](u.tab, `document.querySelectorAll(".held-gone button").length`))
	since = l.Seq()
	u.act(feed.Unhold, "p1")
	l.Acted(since, feed.Unhold)

	since = l.Seq()
	u.act(feed.Hold, "p2")
	since = l.Acted(since, feed.Hold).Seq
	for _, c := range []struct {
		decide func(id int64)
		end    feed.Type
	}{
		{func(id int64) { u.decide(feed.Release, id) }, feed.Delivered},
		{func(id int64) { u.decide(feed.Drop, id) }, feed.Lost},
		{func(int64) { u.click(button("release-all")) }, feed.Delivered},
		{func(id int64) {
			require.True(t, eval[bool](u.tab, "("+isHeld(id)+".focus(), true)"))
			u.press("r")
		}, feed.Delivered},
	} {
		m := l.Message(since, feed.Held, "p2", "") // of the renewals of its lease there is always one
		u.until("it waits in the page", isHeld(m.ID))
		_, arrived := l.Find(since, func(e feed.Event) bool { return arrives(e, m.ID) })
		require.False(t, arrived)
		c.decide(m.ID)
		end := l.Await(since, "it is decided", func(e feed.Event) bool { return arrives(e, m.ID) })
		require.Equal(t, c.end, end.Type)
		u.until("it waits no more", "!"+isHeld(m.ID))
		since = end.Seq
	}
	u.until("the focus stays in the list, or goes to its heading", `document.activeElement.closest("#held")`)
	u.act(feed.Unhold, "p2")
	unheld := l.Acted(since, feed.Unhold)
	u.until("nothing waits", `document.querySelector("#held").dataset.held === "0"`)
	l.Message(unheld.Seq, feed.Delivered, "p2", "")
	_, again := l.Find(unheld.Seq, func(e feed.Event) bool { return e.Type == feed.Held })
	require.False(t, again)
	u.until("what was given up is not shown any more", `!document.querySelector(".held-gone")`)
}

// The key of a leader is deleted: a leader of etcd's package does not notice, and the page warns of two
// leaders. One of Eldest stops. Of a change of leader it does not warn.
func testDeletedKeyOfALeader(t *testing.T, l *lab) {
	loses := func(kind feed.Kind, action string) ui {
		u := begin(l, kind, kind)
		require.False(t, eval[bool](u.tab, twoLeaders))
		since := l.Seq()
		u.act(action, "p1")
		l.Acted(since, action)
		l.Await(since, "p2 leads", feedtest.Reported("p2", "won"))
		return u
	}
	u := loses(feed.Concurrency, feed.DeleteKey)
	u.until("it warns of two leaders", twoLeaders)
	u.until("both are marked", `document.querySelectorAll('.card[data-believes="true"]').length === 2`)
	text := u.text("#overlap")
	require.Contains(t, text, "p1 and p2")
	require.Contains(t, text, "With Eldest and all its rules this does not happen.")
	u.until("the overlap is in the timeline", `eldest.state.overlaps.some((o) => o.a === "p1" && o.b === "p2" && o.to > o.from)`)
	u.click(button("show-overlap"))
	u.until("the timeline stays there", `document.querySelector("#lanes").dataset.follow === "false"`)
	u.click(button("dismiss-overlap"))
	u.until("the warning is hidden", "!("+twoLeaders+")")

	u = loses(feed.Eldest, feed.Resign)
	u.never(2*soon, "it warns of two leaders", twoLeaders)
	require.Zero(t, eval[int](u.tab, "eldest.state.overlaps.length"))

	// p1 learns of the deletion when p2 does: which of them is the first, by some milliseconds, is not certain.
	u = loses(feed.Eldest, feed.DeleteKey)
	sure := func(who string) string {
		return "document.querySelector(" + js(card(who, "")) + `).dataset.believes === "true"`
	}
	u.until("p2 is sure, and p1 is not", sure("p2")+" && !("+sure("p1")+")")
	u.never(2*soon, "p1 is sure", sure("p1"))
	u.until("p2 leads", `document.querySelector(".headline").innerText.startsWith("p2 leads")`)
}
