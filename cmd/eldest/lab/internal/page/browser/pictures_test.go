package browser_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// The size of the pictures.
const pictureWidth, pictureHeight = 1280, 800

// Pictures of the page in light and dark, while something happens: the second candidate leads, the one
// behind it was killed. They are written for the docs.
func testPictures(t *testing.T, l *lab) {
	u := l.visit(chromedp.EmulateViewport(pictureWidth, pictureHeight), prefers("light"))
	u.click(button("dismiss-intro"))
	l.begin(feed.Eldest, feed.Heartbeats, feed.Eldest)
	pause := func() { time.Sleep(1500 * time.Millisecond) } // for longer lanes
	pause()
	since := l.Seq()
	u.act(feed.Resign, "p1")
	l.Acted(since, feed.Resign)
	l.Await(since, "p2 leads", feedtest.Reported("p2", "won"))
	pause()
	since = l.Seq()
	u.act(feed.Kill, "p3")
	l.Acted(since, feed.Kill)
	pause()
	u.until("it says who leads", `document.querySelector(".headline").innerText.startsWith("p2 leads")`)
	u.until("the dead one is in the queue", `document.querySelector('.place[data-who="p3"]').dataset.tone === "dead"`)
	require.True(t, eval[bool](u.tab, "(document.activeElement.blur(), scrollTo(0, 0), document.querySelector('#said').replaceChildren(), true)"))
	for _, scheme := range []string{"light", "dark"} {
		u.do(prefers(scheme))
		require.NoError(t, u.settle())
		u.until("no colour is about to change", `document.getAnimations().length === 0`)
		ctx, cancel := withLimit(u.ctx)
		defer cancel()
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "pictures", "lab-"+scheme+".png"), picture, 0o644))
	}
}
