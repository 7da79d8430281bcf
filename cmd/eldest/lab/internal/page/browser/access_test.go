package browser_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// focused describes the element that has the focus: its action, or what it is, and whether one sees
// that it has it.
type focused struct {
	Name string `json:"name"`
	Seen bool   `json:"seen"`
}

const describeFocus = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return { name: "", seen: true };
	const style = getComputedStyle(e);
	const seen = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
	return { name: e.dataset.action ?? e.dataset.field ?? (e.className || e.localName), seen: seen || e.localName === "select" };
})()`

// Every control can be reached and used with the keyboard alone, and one sees where one is.
func testKeyboardReachesEverything(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	const most = 400
	reached := map[string]bool{}
	require.True(t, eval[bool](u.tab, `(document.querySelector(".lessons-all").open = true)`)) // an earlier test may have chosen a lesson
	for range most {
		u.press("\t")
		at := eval[focused](u.tab, describeFocus)
		if at.Name == "" && len(reached) > 0 {
			break // around the page
		}
		require.True(t, at.Seen, "one does not see that %s has the focus", at.Name)
		reached[at.Name] = true
	}
	for _, name := range []string{
		"skip", "reset", "theme", "help", "messages", "renewals", "zoom-in", "zoom-out", "pause", "kind", "add", "choose", "resign", "stop", "kill", "cut",
		"more", "member-stop", "member-kill", "move-leader", "compact", "lessons", "lesson", "copy-scenario", "download-scenario", "scenario",
	} {
		require.True(t, reached[name], "Tab does not reach %s, but %v", name, reached)
	}

	// Enter presses what has the focus. The click gives the focus of the window back to the page.
	u.click(".brand h1")
	since := l.Seq()
	require.True(t, eval[bool](u.tab, "(document.querySelector("+js(card("p2", ".buttons > "+button(feed.Stop)))+").focus(), true)"))
	u.press("\r")
	l.Acted(since, feed.Stop)
	u.until("the button that takes its place has the focus", fmt.Sprintf("(%s).name === %s", strings.TrimSuffix(describeFocus, ";"), js(feed.Continue)))
	u.press(" ")
	l.Acted(since, feed.Continue)
}

// The keys of the help do what it says.
func testShortcuts(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	key := func(key, action string) {
		t.Helper()
		since := l.Seq()
		u.press(key)
		e := l.Acted(since, action)
		require.Equal(t, "p2", e.Action.On)
	}
	blur := func() { require.True(t, eval[bool](u.tab, "(document.activeElement.blur(), true)")) }
	blur()
	u.press("2")
	u.until("p2 is chosen", fmt.Sprintf(`document.querySelector(%s).getAttribute("aria-pressed") === "true"`, js(card("p2", button("choose")))))
	key("s", feed.Stop)
	l.lives("p2", feed.Stopped)
	u.until("the page knows it", `document.querySelector('.card[data-who="p2"]').dataset.life === "stopped"`)
	key("s", feed.Continue)
	u.until("the page knows it", `document.querySelector('.card[data-who="p2"]').dataset.life === "running"`)
	key("c", feed.Cut)
	u.until("the page knows it", `document.querySelector('.card[data-who="p2"] [data-fault="cut"]')`)
	key("c", feed.Heal)
	u.until("the page knows it", `!document.querySelector('.card[data-who="p2"] [data-fault="cut"]')`)
	key("h", feed.Hold)
	u.until("the page knows it", `document.querySelector('.card[data-who="p2"] [data-fault="hold"]')`)
	key("h", feed.Unhold)
	u.until("the page knows it", `!document.querySelector('.card[data-who="p2"] [data-fault="hold"]')`)
	l.eventually("p2 is queued", func() bool { return slices.Contains(l.order(), "p2") })
	key("t", feed.Transfer)
	l.eventually("p2 leads", func() bool { return l.leader() == "p2" })
	key("k", feed.Kill)
	u.until("the page knows it", `document.querySelector('.card[data-who="p2"]').dataset.life === "dead"`)
	key("k", feed.Restart)
	l.lives("p2", feed.Running)

	blur()
	u.press(" ")
	u.until("the timeline stays", `document.querySelector("#lanes").dataset.follow === "false"`)
	u.press(" ")
	u.until("the timeline follows", `document.querySelector("#lanes").dataset.follow === "true"`)
	u.press("?")
	u.until("the help is shown", `document.querySelector("#help").open`)
	since := l.Seq()
	u.press("k") // does nothing while a dialog is open
	u.press("\u001b")
	u.until("the help is closed", `!document.querySelector("#help").open`)
	_, acted := l.Find(since, feedtest.IsAction)
	require.False(t, acted)
	u.click(button("help"))
	u.click(button("close-help"))
	u.until("the help is closed", `!document.querySelector("#help").open`)
}

// prefers makes the browser prefer light or dark.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// pale is a text whose contrast to its background is too small.
type pale struct {
	Text  string  `json:"text"`
	Where string  `json:"where"`
	Ratio float64 `json:"ratio"`
	Want  float64 `json:"want"`
}

// findPale compares the colour of each visible text with the colours behind it, as the WCAG define
// contrast: 4.5 is wanted, and 3 of large text. What is disabled, and what lies on a picture, is not
// compared.
const findPale = `(() => {
	const g = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
	const known = new Map();
	const rgba = (colour) => {
		if (!known.has(colour)) {
			g.clearRect(0, 0, 1, 1);
			g.fillStyle = "#000";
			g.fillStyle = colour;
			g.fillRect(0, 0, 1, 1);
			const [r, gr, b, a] = g.getImageData(0, 0, 1, 1).data;
			known.set(colour, [r, gr, b, a / 255]);
		}
		return known.get(colour);
	};
	const over = ([r, gr, b, a], under) => [r, gr, b].map((v, i) => v * a + under[i] * (1 - a));
	const behind = (e) => {
		const layers = [];
		for (let at = e; at; at = at.parentElement) {
			const style = getComputedStyle(at);
			if (style.backgroundImage !== "none") return null;
			const colour = rgba(style.backgroundColor);
			layers.push(colour);
			if (colour[3] === 1) break;
		}
		return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
	};
	const opacity = (e) => { let all = 1; for (let at = e; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity); return all; };
	const light = (c) => {
		const [r, gr, b] = c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * gr + 0.0722 * b;
	};
	const found = [];
	let compared = 0;
	for (const e of document.body.querySelectorAll("*")) {
		const text = [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.data.trim()).join(" ").trim();
		if (!text || e.localName === "option" || e.closest(":disabled, .unseen, noscript, svg") || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
		const under = behind(e);
		if (!under) continue;
		const style = getComputedStyle(e);
		const [r, gr, b, a] = rgba(style.color);
		const colour = over([r, gr, b, a * opacity(e)], under);
		const [one, two] = [light(colour), light(under)].sort((x, y) => y - x);
		const ratio = (one + 0.05) / (two + 0.05);
		const size = parseFloat(style.fontSize);
		const want = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
		compared++;
		if (ratio < want) found.push({ text: text.slice(0, 60), where: e.localName + "." + e.className, ratio, want });
	}
	return compared < 20 ? [{ text: "only " + compared + " texts were compared", where: "", ratio: 0, want: 20 }] : found;
})()`

// In light and in dark, all text can be read: also that of faults, errors and dialogs.
func testColoursHaveContrast(t *testing.T, l *lab) {
	u := l.visit(prefers("light"))
	u.expect("409")
	readable := func(what string) {
		t.Helper()
		u.until("no colour is about to change", `document.getAnimations().length === 0`)
		require.Empty(t, eval[[]pale](u.tab, findPale), what)
	}
	l.begin(feed.Eldest, feed.Concurrency, feed.Herd, feed.Eldest)
	readable("at the beginning")

	// As many states as possible at once.
	since := l.Seq()
	u.cut("p1", "requests")
	u.act(feed.Stop, "p4")
	u.act(feed.Kill, "p3")
	u.breakpoint("p2", keepAliveAnswer)
	m := l.Message(since, feed.Held, "p2", keepAliveAnswer)
	u.until("it waits", isHeld(m.ID))
	u.chooseLesson("no-deadline")
	u.click(".lesson " + button("lesson-see"))
	u.click(card("p2", button("choose")))
	u.until("it is shown", `document.querySelector(".inspector-participant").checkVisibility()`)
	background := "getComputedStyle(document.body).backgroundColor"
	light := eval[string](u.tab, background)
	for _, scheme := range []string{"light", "dark"} {
		readable("with many states: " + scheme)
		since := l.Seq()
		u.act(feed.Resign, "p4") // which is refused: it is stopped
		e := l.Await(since, "it is refused", func(e feed.Event) bool { return feedtest.IsAction(e) && e.Action.Do == feed.Resign })
		require.NotEmpty(t, e.Error)
		u.shows(e.Error)
		u.until("it is shown as an error", `document.querySelector("#said").dataset.tone === "bad"`)
		readable("with an error: " + scheme)
		u.click(button("help"))
		readable("with the help: " + scheme)
		u.click(button("close-help"))
		u.click(button("theme"))
		u.until("the colours have changed", "document.documentElement.dataset.theme !== "+js(scheme))
	}
	require.Equal(t, light, eval[string](u.tab, background), "they have changed twice")

	// Until the user chooses, they are what the browser prefers.
	dark := l.visit(prefers("dark"))
	require.NotEqual(t, light, eval[string](dark.tab, background))
	require.Empty(t, eval[[]pale](dark.tab, findPale))
}

// In a narrow window nothing is wider than the window, and everything can still be done.
func testNarrowWindow(t *testing.T, l *lab) {
	const width = 360
	u := l.visit(chromedp.EmulateViewport(width, 740))
	fits := func(what string) {
		t.Helper()
		require.NoError(t, u.settle())
		wide := eval[[]string](u.tab, fmt.Sprintf(`document.scrollingElement.scrollWidth <= %d ? [] : [...document.body.querySelectorAll("*")]
			.filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > %d).map((e) => e.localName + "." + e.className)`, width, width))
		require.Empty(t, wide, "%s: the page is %d pixels wide", what, eval[int](u.tab, "document.scrollingElement.scrollWidth"))
	}
	l.begin(feed.Eldest, feed.Eldest, feed.Heartbeats)
	fits("at the beginning")
	since := l.Seq()
	u.act(feed.Resign, "p1")
	l.Acted(since, feed.Resign)
	u.more("p2")
	fits("with all controls of a participant")
	u.breakpoint("p2", keepAliveAnswer)
	u.chooseLesson("two-leaders-concurrency")
	fits("with a lesson")
	u.click(card("p2", button("choose")))
	u.click(button("message-previous"))
	u.until("a message is shown", `document.querySelector(".inspector-message").checkVisibility()`)
	fits("with a message")
	u.click(button("help"))
	fits("with the help")
	u.click(button("close-help"))
	require.Contains(t, u.text("#queue"), "p3")
}
