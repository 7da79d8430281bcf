package scenario

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// words is a plan without steps: the text of a fact is its cause.
type words struct{ holds bool }

func (words) Perform(context.Context, *Demo) error { return nil }

func (words) Words(f Fact) Line {
	l := Line{Who: f.Participant, Text: f.Cause}
	if f.Kind == Acted {
		l.Rank, l.Why = Cause, "as an operator may"
	}
	return l
}

func (w words) Check([]Fact) []story.Verdict { return []story.Verdict{{Name: "it holds", OK: w.holds}} }

func (words) Summary(_ []Fact, r Result) Summary {
	return Summary{Object: r, Title: "Title", Rows: []string{"row"}, Basis: "Basis", Note: ", note"}
}

// demo is a demo without a cluster, whose output goes to out.
func demo(out *bytes.Buffer, json, holds bool) *Demo {
	return &Demo{teller: newTeller(Config{Out: out, JSON: json}, 5, nil), plan: words{holds}}
}

// Reports of several processes arrive late and in any order, and are printed in the order of their times.
func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := demo(&out, false, true)
		at := func(ms int) time.Time { return d.start.Add(time.Duration(ms) * time.Millisecond) }
		broken := errors.New("broken")
		step := func(context.Context) error {
			d.Tell(Fact{At: at(20), Participant: "c1", Cause: "leads"})
			d.Note(Fact{At: at(30)}, Line{Who: "c2", Text: "fails", More: "text", Once: "failure"})
			d.Note(Fact{At: at(31)}, Line{Who: "c3", Text: "fails", Once: "failure"})
			d.Tell(Fact{At: at(20), Participant: "demo", Cause: "kills", Kind: Acted})
			d.Tell(Fact{At: at(10), Participant: "c4", Cause: "waits"})
			d.Tell(Fact{At: at(11)}) // has no text
			return broken
		}
		require.ErrorContains(t, d.Step(t.Context(), Step{"First", []string{"Look."}, step}), `"First": broken`)
		d.teller.mu.Lock() // a timer prints the rest
		early := out.String()
		d.teller.mu.Unlock()
		require.NotContains(t, early, "leads")
		time.Sleep(SettleTime)
		synctest.Wait()
		require.Contains(t, out.String(), "leads")
		require.Error(t, d.Step(t.Context(), Step{Title: "Second", Do: step}))
		require.NoError(t, d.conclude(d.Facts(), nil, nil))
		require.Equal(t, `
1. First
   Look.
  0.010  c4    waits
  0.020  demo  kills
                 (as an operator may)
  0.020  c1    leads
  0.030  c2    fails
                 text

2. Second
  0.010  c4    waits
  0.020  demo  kills
  0.020  c1    leads
  0.030  c2    fails
                 text

Title
  row

Basis
  ok     it holds                        

All checks passed. 0.1 s, note; all processes are ended, all data is removed.
`, out.String())
		require.Len(t, d.Facts(), 8)
	})
}

// A run that is incomplete has failed, whatever the checks return.
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
		err := demo(&out, true, c.holds).conclude(nil, c.broken, c.left)
		require.ErrorIs(t, err, ErrViolated, name)
		require.Contains(t, out.String(), c.want, name)
	}
}

// The JSON output has every fact, with its time, and nothing else.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	d := demo(&out, true, true)
	d.Tell(Fact{Participant: "c1"})
	d.Say("x")
	d.Aside("x")
	require.NoError(t, d.Step(t.Context(), Step{Title: "x", Do: func(context.Context) error { return nil }}))
	require.Regexp(t, `^\{"time":"20\d\d-[^"]+","event":"","participant":"c1"\}\n$`, out.String())
	require.False(t, d.Facts()[0].At.IsZero())
}

func TestNobodyReads(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	broken := errors.New("broken pipe")
	newTeller(Config{Out: writer(func([]byte) (int, error) { return 0, broken })}, 5, cancel).Say("x")
	require.ErrorIs(t, context.Cause(ctx), broken)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h History[Fact]
		add := func(second int64, name string) { h.Add(Fact{At: time.Unix(second, 0), Participant: name}) }
		three := func(facts []Fact) bool { return len(facts) == 3 }
		done := make(chan error)
		go func() { done <- h.Await(t.Context(), time.Hour, "three", three) }()
		add(3, "c")
		add(1, "a")
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatal("it did not wait", err)
		default:
		}
		add(3, "d")
		require.NoError(t, <-done)
		require.ErrorContains(t, h.Await(t.Context(), time.Second, "pigs fly", func([]Fact) bool { return false }), "timed out after 1s waiting until pigs fly")

		names := ""
		for _, f := range InOrder(h.Facts()) {
			names += f.Participant
		}
		require.Equal(t, "acd", names)
		require.Equal(t, "a", Last(h.Facts(), func(f Fact) bool { return f.At.Unix() == 1 }).Participant)
		require.Nil(t, Last(h.Facts(), func(Fact) bool { return false }))
	})
}

// The bound on a hand-over of which etcd is notified is shorter than what a lease has left in the
// worst case: its renewal was due, and the first attempt failed. Otherwise such a hand-over could
// not be distinguished from the expiry of a lease.
func TestToldIsShorterThanWhatALeaseHasLeft(t *testing.T) {
	for ttl := MinTTL; ttl <= 5*time.Minute; ttl += time.Second {
		r := lease.DefaultRenewal(ttl)
		require.Less(t, Config{TTL: ttl}.Told(), ttl-r.Every-r.Timeout, "a TTL of %v", ttl)
	}
}
