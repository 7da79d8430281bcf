package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// stuck is a reader that does not read until it is released.
type stuck struct {
	text     strings.Builder
	released chan struct{}
}

func (s *stuck) Write(data []byte) (int, error) {
	<-s.released
	return s.text.Write(data)
}

// Callers do not wait for a reader that does not read. Once it reads, it receives the lines that were
// queued, in order, and the rest is reported.
func TestLinesWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		dropped := ""
		l := WriteLines(out, func(text string) { dropped += text }, func(err error) { t.Error(err) })
		l.Write("0")
		synctest.Wait() // it is being written
		want := "0"
		for i := 1; i <= PendingLines+3; i++ {
			l.Write(fmt.Sprint(i))
			if i <= PendingLines {
				want += fmt.Sprint(i)
			}
		}
		began := time.Now()
		l.Close(time.Minute)
		require.Equal(t, time.Minute, time.Since(began), "the limit")
		require.Empty(t, out.text.String())
		l.Write("late")

		close(out.released)
		l.Close(time.Minute) // a second Close is harmless
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, want, out.text.String())
		require.Contains(t, dropped, "3 lines were dropped")
	})
}

// The caller of WriteLines decides what it means that the reader is gone.
func TestLinesTellOfAReaderThatIsGone(t *testing.T) {
	reader, writer := io.Pipe()
	gone := errors.New("gone")
	require.NoError(t, reader.CloseWithError(gone))
	var failures []error
	l := WriteLines(writer, func(string) { t.Error("dropped") }, func(err error) { failures = append(failures, err) })
	l.Write("one\n")
	l.Write("two\n")
	l.Close(time.Minute)
	require.Equal(t, []error{gone, gone}, failures)
}

// Messages on stderr do not wait for a reader, either.
func TestNoticesSayWhatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		cmd := &cobra.Command{Use: "fake"}
		cmd.SetErr(out)
		n := NewNotices(cmd)
		for i := range PendingLines + 2 {
			n.Say(fmt.Sprintf("line %d", i))
			synctest.Wait()
		}
		close(out.released)
		n.Close(time.Minute)
		require.True(t, strings.HasPrefix(out.text.String(), "fake: line 0\nfake: 1 lines were dropped, because they were not read in time\nfake: line 1\n"), out.text.String()[:200])
		require.True(t, strings.HasSuffix(out.text.String(), fmt.Sprintf("fake: line %d\n", PendingLines)))
	})
}
