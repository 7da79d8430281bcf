package scenario

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// note is a fact.
type note struct {
	At   time.Time `json:"time"`
	Line Line      `json:"-"`
}

func (n note) When() time.Time                       { return n.At }
func (n note) Stamped(at time.Time) note             { return note{at, n.Line} }
func (n note) By(*Participant) note                  { return n }
func (n note) Exited(*Participant, int, string) note { return n }

// words is a plan without steps.
type words struct{ verdict story.Verdict }

func (words) Open(*Env[note]) error          { return nil }
func (words) Introduction() string           { return "" }
func (words) Perform(context.Context) error  { return nil }
func (words) Close()                         {}
func (w words) Check([]note) []story.Verdict { return []story.Verdict{w.verdict} }
func (w words) Summary(_ []note, r Result) Summary {
	return Summary{Object: r, Title: "Title", Rows: []string{"row"}, Basis: "Basis", Note: ", note"}
}
func (words) Words(n note) Line { return n.Line }
func (words) Width() int        { return 5 }

func newEnv(out *bytes.Buffer, json, holds bool) *Env[note] {
	e := &Env[note]{
		Config: Config{JSON: json}, Tape: story.NewTape(out, story.Style{}), once: map[string]bool{}, step: map[string]bool{},
		plan: words{story.Verdict{Name: "it holds", OK: holds}},
	}
	e.lines.To = out
	return e
}

func TestWordsForPeople(t *testing.T) {
	var out bytes.Buffer
	e := newEnv(&out, false, true)
	at := func(ms int) time.Time { return e.Tape.Start().Add(time.Duration(ms) * time.Millisecond) }
	step := func() error {
		e.Tell(note{at(1), Line{Who: "c1", Text: "leads", Why: "it is the oldest"}})
		e.Tell(note{At: at(2)}) // has no words
		e.Note(note{At: at(3)}, Line{Who: "c2", Text: "fails", More: "text", Once: "failure"})
		e.Note(note{At: at(4)}, Line{Who: "c3", Text: "fails", Once: "failure"})
		return nil
	}
	require.NoError(t, e.Step("First", []string{"Look."}, step))
	broken := errors.New("broken")
	require.ErrorContains(t, e.Step("Second", nil, func() error { _ = step(); return broken }), `"Second": broken`)
	require.NoError(t, e.conclude(e.History.Facts(), nil, nil))
	require.Regexp(t, `^
1\. First
   Look\.
  0\.001  c1    leads
                 \(it is the oldest\)
  0\.003  c2    fails
                 text

2\. Second
  0\.001  c1    leads
  0\.003  c2    fails
                 text

Title
  row

Basis
  ok     it holds +

All of it held\. \d\.\d s, note; all processes are ended, all data is removed\.
$`, out.String())
	require.Len(t, e.History.Facts(), 4)
}

// A run that is not whole has not held, whatever the checks say.
func TestConclude(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		holds        bool
		broken, left error
		want         string
	}{
		"a check failed": {false, nil, nil, `"ok":false`},
		"a broken step":  {true, broken, nil, `"broken":"broken"`},
		"something left": {true, nil, broken, `"broken":"broken"`},
	} {
		var out bytes.Buffer
		err := newEnv(&out, true, c.holds).conclude(nil, c.broken, c.left)
		require.ErrorIs(t, err, ErrViolated, name)
		require.Contains(t, out.String(), c.want, name)
	}
}

// Programs are told every fact, stamped, and nothing else.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	e := newEnv(&out, true, true)
	e.Tell(note{})
	e.Say("x")
	e.Aside("x")
	require.NoError(t, e.Step("x", nil, func() error { return nil }))
	e.Tape.Flush()
	require.Regexp(t, `^\{"time":"20\d\d-[^"]+"\}\n$`, out.String())
	require.False(t, e.History.Facts()[0].At.IsZero())
}
