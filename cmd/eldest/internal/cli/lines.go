package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Lines writes lines on a goroutine of its own. Callers do not wait for it: a reader that does not
// read must not keep a leader from resigning, a keeper from receiving a deadline, or a process from
// ending. All methods are safe for concurrent use.
type Lines struct {
	waiting chan string
	written chan struct{} // closed when all is written, after Close

	mu     sync.Mutex
	missed int // dropped lines that were not reported yet
	closed bool
}

// PendingLines is how many lines wait for a reader before more are dropped.
const PendingLines = 1000

// WriteLines starts to write to out: each line in one piece and at once. dropped is called with a
// message if lines were dropped, failed for each line that could not be written; both on that goroutine.
func WriteLines(out io.Writer, dropped func(message string), failed func(error)) *Lines {
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
				dropped(fmt.Sprintf("%d lines were dropped, because they were not read in time", n))
			}
		}
	}()
	return l
}

// Write queues a line; after Close it does nothing.
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

// Notices is the stderr of a command that other processes wait for: it does not block.
type Notices struct {
	*Lines
	path string // of the command, as it is called
}

// NewNotices begins to write the notices of a command. The caller closes them.
func NewNotices(cmd *cobra.Command) *Notices {
	n, out := &Notices{path: cmd.CommandPath()}, cmd.ErrOrStderr()
	n.Lines = WriteLines(out, func(text string) { _, _ = io.WriteString(out, NoticeLine(n.path, text)) }, func(error) {})
	return n
}

// Say writes a line.
func (n *Notices) Say(text string) { n.Write(NoticeLine(n.path, text)) }

// NoticeLine renders a message beside the output of a command; path is how the command is called.
func NoticeLine(path, text string) string { return path + ": " + text + "\n" }

// ToStderr returns a function that writes messages, for commands that no other process waits for.
func ToStderr(cmd *cobra.Command) func(string) {
	return func(line string) { fmt.Fprint(cmd.ErrOrStderr(), NoticeLine(cmd.CommandPath(), line)) }
}
