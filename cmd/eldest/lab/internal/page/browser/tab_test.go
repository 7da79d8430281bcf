package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// tab is the tab of a browser, with what went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
	expected []string
}

// visit opens an address in a new window, which has cookies and storage of its own. Before that it
// does some steps: the size of the window, or the colours that the user prefers. The window is closed
// when the test ends.
func visit(t *testing.T, browser *chromium, address string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(cancel) // blocks until it is closed
	// The window lives as long as the context of the first call.
	require.NoError(t, chromedp.Do(ctx))
	watched, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	b.watch(watched, &watching)
	t.Cleanup(func() {
		// A last answer of the page comes after everything that the page has logged before.
		assert.NoError(t, b.settle())
		end()
		watching.Wait()
		assert.Empty(t, b.unexpected(), "the page has logged errors, or requests have failed")
	})
	b.do(before...)
	b.do(focus, chromedp.Navigate(address))
	b.until("the page is loaded", `document.readyState === "complete"`)
	return b
}

// focus makes a window behave as if it had the focus: several are open at the same time.
var focus = chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
	_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return err
})

// watch collects what goes wrong until ctx ends.
func (b *tab) watch(ctx context.Context, watching *sync.WaitGroup) {
	collect(ctx, b, watching, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) string {
		if kind := string(e.Type); kind != "error" && kind != "warning" && kind != "assert" {
			return ""
		}
		return "console: " + argumentsOf(e.Args)
	})
	collect(ctx, b, watching, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) string {
		text := "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		return text
	})
	// Violations of the content security policy are among these.
	collect(ctx, b, watching, log.EntryAdded, func(e log.EventEntryAdded) string {
		if level := string(e.Entry.Level); level != "error" && level != "warning" {
			return ""
		}
		return fmt.Sprintf("log: %s %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	})
	collect(ctx, b, watching, network.LoadingFailed, func(e network.EventLoadingFailed) string {
		if e.Canceled { // by the page itself: the events of a page that is left
			return ""
		}
		return "request: " + e.ErrorText
	})
	collect(ctx, b, watching, network.ResponseReceived, func(e network.EventResponseReceived) string {
		if e.Response.Status < 400 {
			return ""
		}
		return fmt.Sprintf("response: %d of %s", e.Response.Status, e.Response.URL)
	})
}

// collect adds the problems that the events of one kind are.
func collect[E any](ctx context.Context, b *tab, watching *sync.WaitGroup, kind cdp.Event[E], problem func(E) string) {
	events := chromedp.Events(ctx, kind)
	watching.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			if text := problem(e); text != "" {
				b.mu.Lock()
				b.problems = append(b.problems, text)
				b.mu.Unlock()
			}
		}
	})
}

func argumentsOf(all []*runtime.RemoteObject) string {
	var texts []string
	for _, a := range all {
		if a.Description != "" {
			texts = append(texts, a.Description)
		} else {
			texts = append(texts, string(a.Value))
		}
	}
	return strings.Join(texts, " ")
}

// expect makes problems with such a text be no problems, because the test causes them.
func (b *tab) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

func (b *tab) unexpected() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(text string) bool {
		return slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(text, part) })
	})
}

// settle waits until the page has drawn twice, so that it has logged what it had to.
func (b *tab) settle() error {
	ctx, cancel := withLimit(b.ctx)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](
		`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, promised))
	return err
}

// promised makes the browser wait for the value of a promise.
func promised(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }

// withLimit bounds one call to the browser.
func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// do does steps in the tab.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := withLimit(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// eval returns the value of an expression of JavaScript, which may be a promise.
func eval[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	ctx, cancel := withLimit(b.ctx)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](
		"(async () => JSON.stringify((await ("+expression+")) ?? null))()", promised))
	require.NoError(b.t, err, expression)
	require.NoError(b.t, json.Unmarshal([]byte(text), &v), expression)
	return v
}

// until waits until an expression is true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	etcdtest.Eventually(b.t, func() bool { return eval[bool](b, "Boolean("+expression+")") }, "the page: %s", what)
}

// never requires that an expression is not true for a while.
func (b *tab) never(during time.Duration, what, expression string) {
	b.t.Helper()
	etcdtest.Never(b.t, func() bool { return eval[bool](b, "Boolean("+expression+")") }, during, "the page: %s", what)
}

// js is a value as an expression of JavaScript.
func js(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test passes a value that is no JSON
	}
	return string(text)
}

// text returns the text of the first element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, "document.querySelector("+js(selector)+")?.innerText ?? ''")
}

// point is where an element can be clicked, or why not.
type point struct {
	X   float64 `json:"x"`
	Y   float64 `json:"y"`
	Why string  `json:"why"`
}

// find is a function that scrolls the first visible element into view and returns its point. The
// element must be the one that the mouse would hit, and must not move meanwhile. What the next click
// hits is in window.hit: "" for the element. If the page moves just before the click, so that it hits
// another one, it does nothing.
const find = `(async (selector) => {
	const all = [...document.querySelectorAll(selector)];
	const e = all.find((e) => e.checkVisibility({ visibilityProperty: true }));
	if (!e) return { why: all.length + " such elements, and none is visible" };
	if (e.disabled || e.getAttribute("aria-disabled") === "true") return { why: "it is disabled" };
	if (e.closest('[aria-busy="true"]')) return { why: "its last action is not over" };
	e.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
	const before = e.getBoundingClientRect();
	await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	const r = e.getBoundingClientRect();
	if (r.left !== before.left || r.top !== before.top) return { why: "it moves" };
	const x = r.left + r.width / 2, y = r.top + r.height / 2;
	const is = (other) => e.contains(other) || other.closest("label")?.contains(e);
	const top = document.elementFromPoint(x, y);
	if (!top || !is(top)) {
		return { why: "it is behind " + (top ? top.outerHTML.slice(0, 200) : "nothing at " + x + " " + y) };
	}
	window.hit = "nothing";
	document.addEventListener("click", (event) => {
		window.hit = is(event.target) ? "" : "it hits " + event.target.outerHTML.slice(0, 200);
		if (window.hit === "") return;
		event.preventDefault();
		event.stopImmediatePropagation();
	}, { capture: true, once: true });
	return { x, y };
})`

// click clicks the first visible element, as a user does with the mouse: again, if the element has
// moved just before.
func (b *tab) click(selector string) {
	b.t.Helper()
	var at point
	etcdtest.EventuallyFor(b.t, callLimit, func() bool {
		at = eval[point](b, find+"("+js(selector)+")")
		if at.Why != "" {
			return false
		}
		b.do(chromedp.MouseClickXY(at.X, at.Y))
		at.Why = eval[string](b, "window.hit")
		return at.Why == ""
	}, "a click on %s: %s", selector, lazy(func() string { return at.Why }))
}

// lazy is a text that is made when it is printed.
type lazy func() string

func (l lazy) String() string { return l() }

// press presses a key.
func (b *tab) press(key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key))
}

// set gives a field or a list a value, as if the user had typed or chosen it.
func (b *tab) set(selector, value string) {
	b.t.Helper()
	b.until(selector+" is there", "document.querySelector("+js(selector)+")")
	require.True(b.t, eval[bool](b, `((e, value) => {
		if (e.type === "checkbox") { if (String(e.checked) !== value) e.click(); return true; }
		e.focus();
		e.value = value;
		e.dispatchEvent(new Event("input", { bubbles: true }));
		e.dispatchEvent(new Event("change", { bubbles: true }));
		return e.value === value;
	})(document.querySelector(`+js(selector)+`), `+js(value)+`)`), "%s does not take %q", selector, value)
}
