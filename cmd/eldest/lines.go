package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// lines writes lines on a goroutine of its own. Whoever has one does not wait for it: a
// reader that does not read must not keep a leader from resigning, a keeper from learning of
// a deadline, or a process from ending. All methods are safe for concurrent use.
type lines struct {
	waiting chan string
	written chan struct{} // closed when all is written, after close

	mu     sync.Mutex
	missed int // lines for which there was no room, since that was last told
	closed bool
}

// pendingLines is how many lines wait for a reader before more are dropped.
const pendingLines = 1000

// writeLines starts to write to out: each line in one piece and at once, for one that waits
// for the next is of no use to whoever reacts to it. dropped is told how many lines were
// dropped, failed of each that could not be written; both on the goroutine that writes.
func writeLines(out io.Writer, dropped func(n int), failed func(error)) *lines {
	l := &lines{waiting: make(chan string, pendingLines), written: make(chan struct{})}
	go func() {
		defer close(l.written)
		for line := range l.waiting {
			if _, err := io.WriteString(out, line); err != nil {
				failed(err)
			}
			if n := l.unread(); n > 0 {
				dropped(n)
			}
		}
	}()
	return l
}

// write hands a line over; after close it is not written.
func (l *lines) write(line string) {
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

// unread returns how many lines were dropped since it was last asked.
func (l *lines) unread() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.missed
	l.missed = 0
	return n
}

// close waits until all is written, for at most the limit.
func (l *lines) close(limit time.Duration) {
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

// lastLines is how long a command that ends waits for the reader of its lines.
const lastLines = time.Second

// notices is the stderr of a command that others wait for.
type notices struct {
	*lines
	path string // of the command, as it is called
}

func newNotices(cmd *cobra.Command) *notices {
	n, out := &notices{path: cmd.CommandPath()}, cmd.ErrOrStderr()
	n.lines = writeLines(out, func(missed int) {
		_, _ = io.WriteString(out, n.line(droppedLines(missed)))
	}, func(error) {})
	return n
}

func (n *notices) line(text string) string { return noticeLine(n.path, text) }

// noticeLine is what a command says beside its output; path is how it is called.
func noticeLine(path, text string) string { return path + ": " + text + "\n" }

func (n *notices) say(text string) { n.write(n.line(text)) }

func (n *notices) sayf(format string, args ...any) { n.say(fmt.Sprintf(format, args...)) }

func droppedLines(n int) string {
	return fmt.Sprintf("%d lines were dropped, because nobody read them", n)
}
