package browser_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// Each message can be read: its text, the whole of it, and the others of its call.
func testInspector(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	since := l.Seq()
	u.act(feed.Resign, "p1")
	l.Acted(since, feed.Resign)
	l.Await(since, "p2 leads", feedtest.Reported("p2", "won"))

	// The participant first: then its own messages are shown.
	u.click(card("p2", button("choose")))
	u.until("it is shown", `document.querySelector(".inspector-participant").dataset.who === "p2"`)
	u.shows(fmt.Sprint(l.Participant("p2").Pid))
	require.Contains(t, u.text(".inspector-participant"), "won", "what it has reported")

	u.click(".inspector-participant " + button("message-previous"))
	shown := func() int64 {
		return eval[int64](u.tab, `Number(document.querySelector(".inspector-message").dataset.message ?? 0)`)
	}
	u.until("a message is shown", `document.querySelector(".inspector-message").checkVisibility()`)
	first := shown()
	m := u.requireMessage(l, first, "p2")
	require.Contains(t, u.text(".inspector-message"), m.Text)

	u.click(".inspector-message " + button("message-previous"))
	u.until("another message is shown", fmt.Sprintf(`document.querySelector(".inspector-message").dataset.message !== "%d"`, first))
	second := shown()
	u.requireMessage(l, second, "p2")
	u.click(".inspector-message summary" + button("body"))
	u.until("the whole message is shown", `document.querySelector(".inspector-message details").open`)
	require.Contains(t, u.text(".inspector-message details pre"), "{")
	u.click(".inspector-message " + button("message-next"))
	u.until("the other message is shown", fmt.Sprintf(`document.querySelector(".inspector-message").dataset.message !== "%d"`, second))
	u.click(".inspector-message " + button("close-message"))
	u.until("the message is closed", `!document.querySelector(".inspector-message").checkVisibility()`)
}

// requireMessage checks that a message is the one of the feed.
func (u ui) requireMessage(l *lab, id int64, who string) feed.MessageState {
	u.t.Helper()
	sent := l.Sent(id)
	require.NotNil(u.t, sent.Message, "the feed has no message %d", id)
	require.Equal(u.t, who, sent.Who)
	require.Contains(u.t, u.text(".inspector-message"), feedtest.KindOf(*sent.Message))
	return *sent.Message
}

// The timeline is drawn, can be stopped and zoomed, and draws what is asked for.
func testTimeline(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	u.expect("willReadFrequently") // an advice to those who read a canvas, as this test does
	since := l.Seq()
	u.act(feed.Resign, "p1")
	l.Acted(since, feed.Resign)
	colours := eval[int](u.tab, `(() => {
		const canvas = document.querySelector("#lanes canvas");
		const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		const seen = new Set();
		for (let i = 0; i < pixels.length; i += 4) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
		return seen.size;
	})()`)
	require.Greater(t, colours, 8, "the timeline is empty")

	u.click(button("pause"))
	u.until("it stays", `document.querySelector("#lanes").dataset.follow === "false"`)
	picture := func() string {
		require.NoError(t, u.settle())
		return eval[string](u.tab, `document.querySelector("#lanes canvas").toDataURL()`)
	}
	for _, action := range []string{"zoom-in", "zoom-out", "messages"} {
		before := picture()
		u.click("#lanes " + button(action))
		u.until(action+" changes it", `document.querySelector("#lanes canvas").toDataURL() !== `+js(before))
	}
	u.click("#lanes " + button("renewals"))
	require.True(t, eval[bool](u.tab, `document.querySelector('[data-action="renewals"]').checked`))
	u.click(button("pause"))
	u.until("it follows the present", `document.querySelector("#lanes").dataset.follow === "true"`)
}
