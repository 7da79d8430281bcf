package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Lines writes lines on a goroutine of its own. Callers do not wait for it: a
// reader that does not read must not keep a leader from resigning, a keeper from learning of
// a deadline, or a process from ending. All methods are safe for concurrent use.
type Lines struct {
	waiting chan string
	written chan struct{} // closed when all is written, after Close

	mu     sync.Mutex
	missed int // lines for which there was no room, since that was last told
	closed bool
}

// PendingLines is how many lines wait for a reader before more are dropped.
const PendingLines = 1000

// WriteLines starts to write to out: each line in one piece and at once. dropped is told how many
// lines were dropped, failed of each that could not be written; both on the goroutine that writes.
func WriteLines(out io.Writer, dropped func(n int), failed func(error)) *Lines {
	l := &Lines{waiting: make(chan string, PendingLines), written: make(chan struct{})}
	go func() {
		defer close(l.written)
		for line := range l.waiting {
			if _, err := io.WriteString(out, line); err != nil {
				failed(err)
			}
			l.mu.Lock()
			n := l.missed
			l.missed = 0
			l.mu.Unlock()
			if n > 0 {
				dropped(n)
			}
		}
	}()
	return l
}

// Write hands a line over; after Close it is not written.
func (l *Lines) Write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.waiting <- line:
	default:
		l.missed++
	}
}

// LastLines is how long a command that ends waits for the reader of its lines.
const LastLines = time.Second

// Close waits until all is written, for at most the limit.
func (l *Lines) Close(limit time.Duration) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.waiting)
	}
	l.mu.Unlock()
	select {
	case <-l.written:
	case <-time.After(limit):
	}
}

// Notices is the stderr of a command that others wait for.
type Notices struct {
	*Lines
	path string // of the command, as it is called
}

// NewNotices begins to write the notices of a command. The caller closes them.
func NewNotices(cmd *cobra.Command) *Notices {
	n, out := &Notices{path: cmd.CommandPath()}, cmd.ErrOrStderr()
	n.Lines = WriteLines(out, func(missed int) {
		_, _ = io.WriteString(out, NoticeLine(n.path, DroppedLines(missed)))
	}, func(error) {})
	return n
}

// Say writes a line.
func (n *Notices) Say(text string) { n.Write(NoticeLine(n.path, text)) }

// NoticeLine is what a command says beside its output; path is how it is called.
func NoticeLine(path, text string) string { return path + ": " + text + "\n" }

// DroppedLines says that n lines were dropped.
func DroppedLines(n int) string {
	return fmt.Sprintf("%d lines were dropped, because nobody read them", n)
}

// ToStderr is how commands say it that nobody waits for.
func ToStderr(cmd *cobra.Command) func(string) {
	return func(line string) { fmt.Fprint(cmd.ErrOrStderr(), NoticeLine(cmd.CommandPath(), line)) }
}
