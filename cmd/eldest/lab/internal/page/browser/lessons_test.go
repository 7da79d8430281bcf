package browser_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// lesson is an element of assets/lessons.js.
type lesson struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Chapter  int           `json:"chapter"`
	Question string        `json:"question"`
	Setup    feed.Scenario `json:"setup"`
	Rule     string        `json:"rule"`
	Try      []string      `json:"try"`
	See      []string      `json:"see"`
	Book     string        `json:"book"`
}

// root is the directory of the repository.
var root = filepath.Join("..", "..", "..", "..", "..", "..")

// chapters is the number of chapters of the book.
const chapters = 10

// lessonsOf reads the lessons as the page does.
func lessonsOf(b *tab) []lesson {
	b.t.Helper()
	return eval[[]lesson](b, `import("/assets/lessons.js").then((m) => m.lessons)`)
}

// requireComplete checks that each chapter of the book has a lesson, and each lesson says what to do.
func requireComplete(t *testing.T, l *lab, lessons []lesson) {
	t.Helper()
	taught, seen := map[int]bool{}, map[string]bool{}
	for _, x := range lessons {
		require.NotEmpty(t, x.ID)
		require.False(t, seen[x.ID], "two lessons are called %s", x.ID)
		seen[x.ID], taught[x.Chapter] = true, true
		require.NotEmpty(t, x.Title, x.ID)
		require.Contains(t, x.Question, "?", x.ID)
		require.GreaterOrEqual(t, len(x.Try), 2, x.ID)
		require.LessOrEqual(t, len(x.Try), 4, x.ID)
		require.GreaterOrEqual(t, len(x.See), 2, x.ID)
		require.LessOrEqual(t, len(x.See), 4, x.ID)
		require.FileExists(t, filepath.Join(root, filepath.FromSlash(x.Book)), x.ID)
		require.NotEmpty(t, x.Setup.Steps, x.ID)
		for _, step := range x.Setup.Steps {
			if step.Do == feed.Add {
				require.Contains(t, l.info.Kinds, step.Kind, x.ID)
			}
			if step.Rule != "" {
				requireRule(t, l.info, step.Rule, step.Kind, x.ID)
				require.Equal(t, x.Rule, step.Rule, x.ID)
			}
		}
		if x.Rule != "" {
			requireRule(t, l.info, x.Rule, feed.Eldest, x.ID)
		}
	}
	for chapter := 0; chapter <= chapters; chapter++ {
		require.True(t, taught[chapter], "chapter %d has no lesson", chapter)
	}
}

func requireRule(t *testing.T, info feed.Info, name string, kind feed.Kind, lesson string) {
	t.Helper()
	i := slices.IndexFunc(info.Rules, func(r feed.Rule) bool { return r.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s: there is no rule %s", lesson, name)
	require.Contains(t, info.Rules[i].Kinds, kind, "%s: the rule %s does not apply", lesson, name)
}

// The lessons are complete. The setup of a lesson is played without a failure, and leaves the queue that it describes. The
// page begins some of them, or all with -lessons.
func testLessonsCanBePlayed(t *testing.T, l *lab) {
	some := []string{"no-deadline", "test-and-set"} // of each kind of step
	first := l.Seq()
	u := l.visit()
	lessons := lessonsOf(u.tab)
	requireComplete(t, l, lessons)
	for _, x := range lessons {
		if !*allLessons && !slices.Contains(some, x.ID) {
			continue
		}
		t.Log(x.ID)
		begun, since := time.Now(), l.Seq()
		u.beginLesson(x)
		played := l.Acted(since, feed.Play).Seq
		var want []string
		for _, step := range x.Setup.Steps {
			played = l.Acted(played, step.Do).Seq
			if step.Do == feed.Add {
				want = append(want, participantName(len(want)))
			}
		}
		l.eventually(x.ID+": the participants are queued", func() bool { return slices.Equal(l.order(), want) })
		n := 0
		for _, step := range x.Setup.Steps {
			switch step.Do {
			case feed.Add:
				l.lives(want[n], feed.Running)
				p := l.Participant(want[n])
				require.Equal(t, []any{step.Kind, step.Rule}, []any{p.Kind, p.Rule}, x.ID)
				n++
			case feed.Breakpoint:
				l.becomes(step.On, "has breakpoints", func(p feed.ParticipantState) bool { return slices.Equal(p.Breakpoints, step.Breakpoints) })
			}
		}
		l.Await(since, "the first one leads", feedtest.Reported(want[0], "won"))
		u.shows(x.Question)
		u.until("the list is folded", `!document.querySelector(".lessons-all").open`)
		u.until("the introduction makes room", `!document.querySelector("#intro").checkVisibility()`)
		t.Logf("%s took %v", x.ID, time.Since(begun).Round(time.Millisecond))
	}
	// A rule that a lesson takes out can be put back.
	u.chooseLesson("no-deadline")
	since := l.Seq()
	u.click(".lesson " + button("lesson-other"))
	since = l.Acted(since, feed.Play).Seq
	l.Acted(since, feed.Add)
	l.lives("p1", feed.Running)
	require.Empty(t, l.Participant("p1").Rule)
	u.click(".lesson " + button("lesson-see"))
	u.until("the answer is shown", `document.querySelector(".lesson-see").checkVisibility()`)

	_, failed := l.Find(first, func(e feed.Event) bool { return feedtest.IsAction(e) && e.Error != "" })
	require.False(t, failed)
}

// What the lessons of missing rules say is seen on the page.
func testLessonsAreTrue(t *testing.T, l *lab) {
	u := l.visit()
	all := map[string]lesson{}
	for _, x := range lessonsOf(u.tab) {
		all[x.ID] = x
	}
	// set up a lesson, and wait until p1 leads and the others wait.
	begin := func(id, action string) {
		t.Helper()
		u.chooseLesson(id)
		since := l.Seq()
		u.click(".lesson " + button(action))
		since = l.Acted(since, feed.Play).Seq
		var want []string
		for _, step := range all[id].Setup.Steps {
			if step.Do == feed.Add {
				want = append(want, participantName(len(want)))
			}
		}
		l.eventually(id+": the participants are queued", func() bool { return slices.Equal(l.order(), want) })
		l.Await(since, "p1 leads", feedtest.Reported("p1", "won"))
		require.False(t, eval[bool](u.tab, twoLeaders))
	}
	leads := func(since int64, who string) {
		t.Helper()
		l.Await(since, who+" leads", feedtest.Reported(who, "won"))
	}

	begin("no-deadline", "lesson-setup")
	u.cut("p1", "both")
	u.until("there are two leaders without the deadline", twoLeaders)
	begin("no-deadline", "lesson-other")
	since := l.Seq()
	u.cut("p1", "both")
	leads(since, "p2")
	u.never(2*soon, "there are two leaders with the deadline", twoLeaders)

	begin("winner-without-a-key", "lesson-setup")
	since = l.Seq()
	u.act(feed.DeleteKey, "p2")
	l.Acted(since, feed.DeleteKey)
	u.act(feed.Resign, "p1")
	leads(since, "p2")
	leads(since, "p3")
	u.until("p2 and p3 lead", twoLeaders)

	begin("key-without-an-owner", "lesson-setup")
	since = l.Seq()
	u.act(feed.Resign, "p1")
	leads(since, "p2")
	l.eventually("there is a key more", func() bool { return len(l.places(l.info.Election)) == 3 })
	since = l.Seq()
	u.act(feed.Resign, "p2")
	l.Acted(since, feed.Resign)
	u.until("nobody leads", `document.querySelector(".headline").innerText.startsWith("Nobody leads")`)
	_, won := l.Find(since, func(e feed.Event) bool { return e.Type == feed.Report && e.Report.Kind == "won" })
	require.False(t, won)
	since = l.Seq()
	u.click(".place " + button(feed.DeleteKey))
	l.Acted(since, feed.DeleteKey)
	l.Await(since, "one of them leads", func(e feed.Event) bool { return e.Type == feed.Report && e.Report.Kind == "won" })
	u.until("one of them leads", `document.querySelector(".headline").innerText.includes(" leads with token ")`)
}
