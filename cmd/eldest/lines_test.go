package main

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

// stuck is a reader that does not read, until it is released.
type stuck struct {
	sheet
	released chan struct{}
}

func (s *stuck) Write(data []byte) (int, error) {
	<-s.released
	return s.sheet.Write(data)
}

// Nobody waits for a reader that does not read; once it does, it gets what there was room
// for, in order, and hears of the rest.
func TestLinesWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		missed := 0
		l := writeLines(out, func(n int) { missed += n }, func(err error) { t.Error(err) })
		l.write("0")
		synctest.Wait() // it is being written
		want := "0"
		for i := 1; i <= pendingLines+3; i++ {
			l.write(fmt.Sprint(i))
			if i <= pendingLines {
				want += fmt.Sprint(i)
			}
		}
		began := time.Now()
		l.close(time.Minute)
		require.Equal(t, time.Minute, time.Since(began), "the limit")
		require.Empty(t, out.String())
		l.write("late")

		close(out.released)
		l.close(time.Minute) // once more is harmless
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, want, out.String())
		require.Equal(t, 3, missed)
	})
}

// Who hears of a reader that is gone decides what that means.
func TestLinesTellOfAReaderThatIsGone(t *testing.T) {
	reader, writer := io.Pipe()
	gone := errors.New("gone")
	require.NoError(t, reader.CloseWithError(gone))
	var failures []error
	l := writeLines(writer, func(int) { t.Error("dropped") }, func(err error) { failures = append(failures, err) })
	l.write("one\n")
	l.write("two\n")
	l.close(patience)
	require.Equal(t, []error{gone, gone}, failures)
}

// What a command says on stderr does not wait, either.
func TestNoticesSayWhatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		cmd := &cobra.Command{Use: "fake"}
		cmd.SetErr(out)
		n := newNotices(cmd)
		for i := range pendingLines + 2 {
			n.sayf("line %d", i)
			synctest.Wait()
		}
		close(out.released)
		n.close(patience)
		require.True(t, strings.HasPrefix(out.String(), "fake: line 0\nfake: 1 lines were dropped, because nobody read them\nfake: line 1\n"), out.String()[:200])
		require.True(t, strings.HasSuffix(out.String(), fmt.Sprintf("fake: line %d\n", pendingLines)))
	})
}
