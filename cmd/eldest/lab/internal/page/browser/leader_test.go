package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// A newcomer sees who leads and why, kills it, and sees what happens then. What the page shows is
// what etcd has.
func testTheLeaderIsEtcds(t *testing.T, l *lab) {
	require.Equal(t, "sandbox", l.info.Mode)
	u := l.visit()
	require.True(t, eval[bool](u.tab, `document.querySelector("#intro").checkVisibility()`), "newcomers are told what this is")
	l.eventually("the participants of the beginning are queued", func() bool { return len(l.order()) == 3 })
	u.showsTheQueueOf(l)

	// etcd replaces the leader when its lease has ended. Until then the page says why nobody leads.
	killed := l.leader()
	pid, key, since := l.Participant(killed).Pid, l.placeOf(killed), l.Seq()
	u.act(feed.Kill, killed)
	l.Acted(since, feed.Kill)
	require.False(t, runs(pid))
	l.lives(killed, feed.Dead)
	require.False(t, l.gone(key), "its key stays until the lease expires")
	u.until("nobody leads", `document.querySelector(".headline").innerText.startsWith("Nobody leads")`)
	l.eventually("its lease has ended", func() bool { return len(l.order()) == 2 })
	u.showsTheQueueOf(l)

	since = l.Seq()
	u.act(feed.Restart, killed)
	l.Acted(since, feed.Restart)
	l.eventually("it is queued again", func() bool { order := l.order(); return len(order) == 3 && order[2] == killed })
	l.lives(killed, feed.Running)
	p := l.Participant(killed)
	require.Equal(t, 2, p.Lives)
	require.True(t, runs(p.Pid))
	require.NotEqual(t, pid, p.Pid)
	u.showsTheQueueOf(l)
	u.click(button("dismiss-intro"))
	u.until("the introduction is hidden", `!document.querySelector("#intro").checkVisibility()`)
}

// runs reports whether a process runs.
func runs(pid int) bool {
	_, _, ok := clitest.Stat(pid)
	return ok
}

// shownPlace is a box of the queue.
type shownPlace struct {
	Key   string `json:"key"`
	Token string `json:"token"`
	Waits string `json:"waits"`
	Leads string `json:"leads"`
	Text  string `json:"text"`
}

// showsTheQueueOf waits until the page shows the queue that etcd has then, and names its leader. Both
// are read again each time, because the queue may change meanwhile.
func (u ui) showsTheQueueOf(l *lab) {
	u.t.Helper()
	l.eventually("the page shows etcd's queue and its leader", func() bool {
		shown := eval[[]shownPlace](u.tab, `[...document.querySelectorAll(".queue-list .place")].map((e) => ({ ...e.dataset, text: e.innerText }))`)
		headline := u.text(".headline")
		places, order := l.places(l.info.Election), l.order()
		if len(places) == 0 || len(places) != len(order) || len(places) != len(shown) {
			return false
		}
		older := ""
		for i, p := range places {
			want := shownPlace{p.Key, fmt.Sprint(p.Create), older, fmt.Sprint(i == 0), shown[i].Text}
			if shown[i] != want || order[i] == unknown || !strings.Contains(shown[i].Text, order[i]) {
				return false
			}
			older = order[i]
		}
		return strings.Contains(headline, fmt.Sprintf("%s leads with token %d", order[0], places[0].Create))
	})
}
