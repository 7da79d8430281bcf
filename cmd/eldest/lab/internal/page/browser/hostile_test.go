package browser_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// hostile is markup that would run a script, in as many contexts as a text may be put into.
const hostile = `"'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>${window.hacked=1}`

// requireText checks that markup was shown as text, and that no part of it has become an element.
func requireText(b *tab, part string) {
	b.t.Helper()
	b.until("it shows the markup as text", "document.body.innerText.includes("+js(part)+")")
	require.False(b.t, eval[bool](b, `"hacked" in window`))
	require.Zero(b.t, eval[int](b, `document.querySelectorAll('img[src="x"], script:not([src])').length`))
}

// hostileSource is a sandbox in which every text is markup.
func hostileSource() *scripted {
	s := &scripted{
		info: feed.Info{
			Mode: "sandbox", Write: true, Election: hostile, Endpoints: []string{hostile}, Version: hostile,
			Kinds: []feed.Kind{feed.Eldest, feed.Kind(hostile)},
			Rules: []feed.Rule{{Name: hostile, Text: hostile, Kinds: []feed.Kind{feed.Eldest, feed.Kind(hostile)}}},
		},
		log: feed.NewLog(),
	}
	body, _ := json.Marshal(map[string]string{hostile: hostile, "key": "PGltZyBzcmM9eD4="}) // a map of strings never fails
	for _, e := range []feed.Event{
		{Type: feed.Members, Members: []feed.MemberState{{Name: hostile, State: hostile, Endpoint: hostile}, {Name: "m2", State: "leader"}}},
		{Type: feed.Participant, Who: hostile, Participant: &feed.ParticipantState{
			Kind: feed.Kind(hostile), Life: feed.Running, Lives: 1, Pid: 1, TTLMS: 5000, Cut: hostile, Rule: hostile, Breakpoints: []string{hostile},
		}},
		{Type: feed.Report, Who: hostile, Report: &feed.ParticipantNews{Kind: "joined", Key: hostile, Lease: hostile, Text: hostile}},
		{Type: feed.Report, Who: hostile, Report: &feed.ParticipantNews{Kind: "phase", Text: hostile}},
		{Type: feed.Report, Who: hostile, Report: &feed.ParticipantNews{Kind: "won", Token: 2, Key: hostile, Text: hostile}},
		{Type: feed.Queue, Queue: &feed.QueueState{Election: hostile, Revision: 2, Places: []feed.PlaceState{
			{Key: hostile, Who: hostile, Value: hostile, Create: 2, Mod: 3, Lease: hostile, LeftMS: 4000, GrantedMS: 5000},
			{Key: hostile + "2", Value: hostile, Create: 3, Mod: 3, Lease: hostile, LeftMS: -1, Foreign: true},
		}}},
		{Type: feed.Observer, Who: "observer", Observer: &feed.ObserverState{State: "led", Token: 2, Key: hostile, Value: hostile, Why: hostile}},
		{Type: feed.Sent, Who: hostile, Message: &feed.MessageState{
			ID: 1, Kind: "request", Method: hostile, Call: 1, Text: hostile, Lines: []string{hostile, hostile}, Body: body,
		}},
		{Type: feed.Held, Message: &feed.MessageState{ID: 1}},
		{Type: feed.Acted, Action: &feed.Action{Do: feed.Kill, On: hostile}, Error: hostile},
		{Type: feed.Acted, Action: &feed.Action{Do: hostile, On: hostile}},
		{Type: feed.Problem, Error: hostile},
	} {
		s.log.Add(e)
	}
	return s
}

// Whatever an event says is shown as text.
func testSandboxShowsMarkupAsText(t *testing.T, browser *chromium) {
	u := use(visit(t, browser, serve(t, hostileSource())))
	requireText(u.tab, hostile)
	u.click(".card " + button("choose"))
	u.until("the participant is shown", `document.querySelector(".inspector-participant").checkVisibility()`)
	u.click(".card details.more > summary")
	u.until("the rest of the card is there", `document.querySelector(".card .more-body select")`)
	u.click(".held-row " + button("choose-message"))
	u.until("the message is shown", `document.querySelector(".inspector-message").checkVisibility()`)
	u.click(".inspector-message summary" + button("body"))
	u.click(".place " + button("choose"))
	for _, selector := range []string{".queue-list", ".cards", ".members-list", ".held-list", ".done-list", "#problem"} {
		require.Contains(t, u.text(selector), "<img src=x", selector)
	}
	u.click(button("dismiss-problem"))
	u.until("the problem is hidden", `!document.querySelector("#problem").checkVisibility()`)
	// Tooltips show texts of events, too.
	require.True(t, eval[bool](u.tab, `(document.querySelectorAll("[data-tip]").forEach((e) => {
		e.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
	}), true)`))
	require.NoError(t, u.settle())
	requireText(u.tab, hostile)
}
