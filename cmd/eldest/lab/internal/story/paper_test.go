package story

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Lines of several processes come late and in any order; on paper they are in order.
func TestTapeIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tape := NewTape(&out, Style{})
		written := func() string { // and starts anew
			tape.mu.Lock()
			defer tape.mu.Unlock()
			defer out.Reset()
			return out.String()
		}
		at := func(ms int) time.Time { return tape.Start().Add(time.Duration(ms) * time.Millisecond) }
		tape.At(at(20), Effect, "second")
		tape.At(at(20), Onlooker, "third")
		tape.At(at(10), Effect, "first", "and why")
		tape.At(at(20), Cause, "its cause")
		require.Empty(t, written())
		time.Sleep(SettleTime)
		synctest.Wait()
		require.Equal(t, "  0.010  first\n         and why\n  0.020  its cause\n  0.020  second\n  0.020  third\n", written())

		tape.At(at(30), Effect, "before")
		tape.Say("untimed")
		require.Equal(t, "  0.030  before\nuntimed\n", written())
	})
}

func TestLivelyTellsThatNobodyReads(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	broken := errors.New("broken pipe")
	_, err := fmt.Fprint(&Lively{Out: writer(func([]byte) (int, error) { return 0, broken }), Gone: cancel}, "x")
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, context.Cause(ctx), broken)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Nothing to judge is no success.
func TestJudge(t *testing.T) {
	good := Judge("a", 1, nil, "%d of them", 1)
	bad := Judge("b", 1, []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7"}, "x")
	empty := Judge("c", 0, nil, "x")
	require.Equal(t, []Verdict{bad, empty}, Failed([]Verdict{good, bad, empty}))
	lines := Style{}.Verdicts([]Verdict{good, bad, empty})
	require.Equal(t, "  ok     a                               1 of them", lines[0])
	require.Contains(t, lines, "           and 2 more")
}

func TestWords(t *testing.T) {
	require.Equal(t, "1.5 ms", Millis(1500*time.Microsecond))
	require.Equal(t, "1500 ms", Millis(1500*time.Millisecond))
	require.Equal(t, "1 process", Count(1, "process"))
	require.Equal(t, "2 processes", Count(2, "process"))
	require.Equal(t, "0 keys", Count(0, "key"))
	require.Len(t, Shortened(make([]string, 100)), 13)
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{7: "7", 999: "999", 1000: "1,000", 10_020: "10,020", 1234567: "1,234,567"} {
		require.Equal(t, want, Thousands(n))
	}
}
