package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// ui is the page, with its controls: all selectors of its elements are in this file.
type ui struct{ *tab }

// use waits until the page receives the feed.
func use(b *tab) ui {
	b.t.Helper()
	b.until("it is connected", `document.body.dataset.connection === "live" && Number(document.body.dataset.seq) > 0`)
	return ui{b}
}

// css is a string of CSS.
func css(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\a `).Replace(text) + `"`
}

// card is the selector of something in the card of a participant.
func card(who, inside string) string { return fmt.Sprintf(".card[data-who=%s] %s", css(who), inside) }

// button is the selector of the button of an action.
func button(action string) string { return fmt.Sprintf("[data-action=%s]", css(action)) }

// outside are the actions whose buttons are visible in a card without "More".
var outside = []string{feed.Resign, feed.Stop, feed.Continue, feed.Kill, feed.Restart}

// act does an action on a participant that needs nothing but its button.
func (u ui) act(action, who string) {
	u.t.Helper()
	if slices.Contains(outside, action) {
		u.click(card(who, ".buttons > "+button(action)))
		return
	}
	u.more(who)
	u.click(card(who, ".more-body "+button(action)))
}

// more opens the rest of a card.
func (u ui) more(who string) {
	u.t.Helper()
	u.until(who+" has a card", fmt.Sprintf("document.querySelector(%s)", js(card(who, "details.more"))))
	if !eval[bool](u.tab, fmt.Sprintf("document.querySelector(%s).open", js(card(who, "details.more")))) {
		u.click(card(who, "details.more > summary"))
	}
	u.until("the rest of the card is there", fmt.Sprintf("document.querySelector(%s)", js(card(who, ".more-body "+button(feed.Hold)))))
}

func (u ui) cut(who, way string) {
	u.t.Helper()
	u.more(who)
	u.click(card(who, fmt.Sprintf(".more-body %s[data-way=%s]", button(feed.Cut), css(way))))
}

func (u ui) delay(who string, ms int) {
	u.t.Helper()
	u.more(who)
	u.set(card(who, `[data-field="delay"]`), fmt.Sprint(ms))
	u.act(feed.Delay, who)
}

// breakpoint sets or removes a breakpoint.
func (u ui) breakpoint(who, kind string) {
	u.t.Helper()
	u.more(who)
	u.click(card(who, fmt.Sprintf("%s[data-kind=%s]", button(feed.Breakpoint), css(kind))))
}

// rule restarts a participant without a rule, or with all rules.
func (u ui) rule(who, rule string) {
	u.t.Helper()
	u.more(who)
	u.set(card(who, `[data-field="rule"]`), rule)
	u.click(card(who, ".more-body "+button(feed.SetRule)))
}

// add starts a participant, without a rule if it is not "".
func (u ui) add(kind feed.Kind, rule string) {
	u.t.Helper()
	u.set(`#participants [data-field="kind"]`, string(kind))
	u.set(`#participants [data-field="without"]`, rule)
	u.click("#participants " + button(feed.Add))
}

// member does an action on a member of etcd, counted from 0.
func (u ui) member(action string, i int) {
	u.t.Helper()
	u.click(fmt.Sprintf(`.member[data-member="%d"] %s`, i, button(action)))
}

// held is the selector of the row of a held message.
func held(id int64) string { return fmt.Sprintf(`.held-row[data-message="%d"]`, id) }

// decide releases or drops a held message.
func (u ui) decide(action string, id int64) {
	u.t.Helper()
	u.click(held(id) + " " + button(action))
}

// isHeld is an expression that is true if a message waits in the page.
func isHeld(id int64) string { return fmt.Sprintf("document.querySelector(%s)", js(held(id))) }

// twoLeaders is an expression that is true while the page warns of two leaders.
const twoLeaders = `!document.querySelector("#overlap").hidden`

// queueShows waits until the queue has exactly these keys, in this order, with their tokens and names.
func (u ui) queueShows(places []place, names []string) {
	u.t.Helper()
	var want [][]string
	for _, p := range places {
		want = append(want, []string{p.Key, fmt.Sprint(p.Create)})
	}
	u.until(fmt.Sprintf("the queue is %v", want), `JSON.stringify([...document.querySelectorAll(".queue-list .place")]
		.map((e) => [e.dataset.key, e.dataset.token])) === JSON.stringify(`+js(want)+")")
	for i, p := range places {
		u.until("the name of "+p.Key, fmt.Sprintf("document.querySelector(%s).innerText.includes(%s)",
			js(".queue-list .place[data-key="+css(p.Key)+"]"), js(names[i])))
	}
}

// shows waits until a text is on the page.
func (u ui) shows(text string) {
	u.t.Helper()
	u.until("the text "+text, "document.body.innerText.includes("+js(text)+")")
}

// chooseElection chooses an election of an existing cluster.
func (u ui) chooseElection(name string) {
	u.t.Helper()
	choice := button("election") + "[data-election=" + css(name) + "]"
	u.click(choice)
	u.until("it is chosen", fmt.Sprintf(`document.querySelector(%s).getAttribute("aria-pressed") === "true"`, js(choice)))
}

// evict presses the button, checks the question, and answers it.
func (u ui) evict(key string, yes bool) {
	u.t.Helper()
	u.click(button(feed.Evict) + "[data-key=" + css(key) + "]")
	u.until("it asks", `document.querySelector("#confirm").open`)
	require.Contains(u.t, u.text("#confirm"), key)
	if yes {
		u.click(button("confirm-yes"))
	} else {
		u.click(button("confirm-no"))
	}
	u.until("the question is answered", `!document.querySelector("#confirm").open`)
}

// looks are the actions that only change what the page shows.
var looks = []string{
	"theme", "help", "close-help", "pause", "zoom-in", "zoom-out", "election", "dismiss-intro", "dismiss-problem", "dismiss-overlap", "show-overlap",
}

// controls returns the visible controls that change something besides the page.
func (u ui) controls() []string {
	u.t.Helper()
	all := eval[[]string](u.tab, `[...document.querySelectorAll("[data-action]")].filter((e) => e.checkVisibility()).map((e) => e.dataset.action)`)
	return slices.DeleteFunc(all, func(action string) bool { return slices.Contains(looks, action) })
}

// beginLesson chooses a lesson and sets it up.
func (u ui) beginLesson(x lesson) {
	u.t.Helper()
	u.chooseLesson(x.ID)
	u.click(".lesson " + button("lesson-setup"))
}

func (u ui) chooseLesson(id string) {
	u.t.Helper()
	chosen := fmt.Sprintf(`document.querySelector(".lesson").dataset.lesson === %s`, js(id))
	if !eval[bool](u.tab, chosen) { // another click would close it
		if !eval[bool](u.tab, `document.querySelector(".lessons-all").open`) {
			u.click(".lessons-all > summary")
		}
		u.click(button("lesson") + "[data-lesson=" + css(id) + "]")
	}
	u.until("the lesson is chosen", chosen)
}

// copied presses Copy, and returns what is in the clipboard then.
func (u ui) copied() string {
	u.t.Helper()
	require.True(u.t, eval[bool](u.tab, "(window.copied = '', navigator.clipboard.writeText = async (text) => { window.copied = text; }, true)"))
	u.click(button("copy-scenario"))
	u.until("something was copied", "window.copied !== ''")
	return eval[string](u.tab, "window.copied")
}

// play pastes a scenario and plays it.
func (u ui) play(scenario string) {
	u.t.Helper()
	if !eval[bool](u.tab, `document.querySelector("details.scenario").open`) {
		u.click("details.scenario > summary")
	}
	require.True(u.t, eval[bool](u.tab, "(navigator.clipboard.readText = async () => "+js(scenario)+", true)"))
	u.click(button("paste-scenario"))
	u.until("it was pasted", `document.querySelector('[data-field="scenario"]').value === `+js(scenario))
	u.click(button("play-scenario"))
}

// begin opens the page, and begins anew with participants of these kinds, of which p1 leads.
func begin(l *lab, kinds ...feed.Kind) ui {
	l.t.Helper()
	u := l.visit()
	l.begin(kinds...)
	// The participants of an earlier test have the same names: their cards must not be taken for these.
	u.until("it shows them", fmt.Sprintf(
		`Number(document.body.dataset.seq) >= %d && document.querySelectorAll(".card").length === %d`, l.Seq(), len(kinds)))
	return u
}

// soon is a pause after which something that must not happen would have happened.
const soon = 500 * time.Millisecond
