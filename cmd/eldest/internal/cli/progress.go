package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often progress is shown: on a terminal often, so that its clock seems to run; elsewhere rarely,
// so that a later reader sees that the run went on.
const (
	redraw = 500 * time.Millisecond
	remind = 15 * time.Second
)

// ClearLine clears the line that the cursor is in.
const ClearLine = "\r\x1b[K"

// Progress shows how far a run is, as described by T: on a terminal as one line that is rewritten,
// elsewhere, if it is wanted at all, as a new line from time to time. Its methods may be called from
// any goroutine.
type Progress[T any] struct {
	out      io.Writer
	terminal *os.File // nil if no line can be rewritten
	line     func(last T, passed time.Duration) string
	began    time.Time

	mu   sync.Mutex
	last T
	stop chan struct{}
	done chan struct{}
}

// NewProgress starts to show what line renders of the newest update. The caller must close it.
func NewProgress[T any](out io.Writer, wanted bool, line func(last T, passed time.Duration) string) *Progress[T] {
	p := &Progress[T]{
		out: out, terminal: Drawable(out), line: line, began: time.Now(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if p.terminal == nil && !wanted {
		close(p.done)
		return p
	}
	go p.show()
	return p
}

// Drawable returns the terminal that out is; nil if it is none on which a line can be rewritten.
func Drawable(out io.Writer) *os.File {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		return file
	}
	return nil
}

// Update records how far the run is. It writes nothing: a slow terminal must not delay what is
// measured.
func (p *Progress[T]) Update(now T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// Close removes the line from the terminal, and waits.
func (p *Progress[T]) Close() {
	close(p.stop)
	<-p.done
}

func (p *Progress[T]) show() {
	defer close(p.done)
	ticker := time.NewTicker(map[bool]time.Duration{true: redraw, false: remind}[p.terminal != nil])
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.stop:
			if p.terminal != nil {
				fmt.Fprint(p.out, ClearLine)
			}
			return
		}
		p.mu.Lock()
		line := p.line(p.last, time.Since(p.began))
		p.mu.Unlock()
		if p.terminal != nil {
			width, _, err := term.GetSize(int(p.terminal.Fd()))
			if err != nil || width <= 0 {
				width = 80
			}
			fmt.Fprint(p.out, "\r"+Cut(line, width-1)+"\x1b[K")
		} else {
			fmt.Fprintln(p.out, line)
		}
	}
}

// Cut shortens a line to the width.
func Cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width && width > 0 {
		return string(runes[:width])
	}
	return line
}
