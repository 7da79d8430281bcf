package browser_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// doneWithP2 is true if the page lists two actions on p2 besides the one that has added it.
const doneWithP2 = `document.querySelectorAll('.done-list [data-on="p2"]:not([data-do="add"])').length === 2`

// What was done can be copied and saved as a scenario, and played again: it begins anew, and does the
// same.
func testCopyAndPlay(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	since := l.Seq()
	u.act(feed.Stop, "p2")
	l.Acted(since, feed.Stop)
	u.act(feed.Continue, "p2")
	l.Acted(since, feed.Continue)
	u.until("both are listed", doneWithP2)

	copied := u.copied()
	var s feed.Scenario
	require.NoError(t, json.Unmarshal([]byte(copied), &s))
	var did []string
	for _, step := range s.Steps {
		did = append(did, step.Do+" "+step.On)
	}
	require.Equal(t, []string{"add ", "add ", "stop p2", "continue p2"}, did)
	require.JSONEq(t, string(l.get("/done")), copied)
	require.True(t, eval[bool](u.tab, `(window.saved = "", URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return "about:blank"; },
		HTMLAnchorElement.prototype.click = () => {}, true)`))
	u.click(button("download-scenario"))
	u.until("it was saved", "window.saved.trim() === window.copied.trim()")

	since = l.Seq()
	u.play(copied)
	since = l.Acted(since, feed.Play).Seq
	for _, step := range s.Steps {
		since = l.Acted(since, step.Do).Seq
	}
	l.eventually("the participants are queued", func() bool { // in any order: p2 starts when p1 is up
		return slices.Equal(slices.Sorted(slices.Values(l.order())), []string{"p1", "p2"})
	})
	u.showsTheQueueOf(l)
	u.until("the list has begun anew", doneWithP2)
	u.shows("add p2: Eldest")

	// What is no scenario is refused, and the page says why.
	u.play("[]x")
	u.until("it says why", `document.querySelector("#said").dataset.tone === "bad" && document.querySelector("#said").innerText !== ""`)

	since = l.Seq()
	u.click(button(feed.Reset))
	l.Acted(since, feed.Reset)
	l.eventually("the participants of the beginning are queued", func() bool { // in any order: each starts when the one before it is up
		return slices.Equal(slices.Sorted(slices.Values(l.order())), []string{"p1", "p2", "p3"})
	})
}
