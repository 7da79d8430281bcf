package story

import (
	"context"
	"fmt"
	"io"
)

// Lively is a writer that tells when nobody takes what is written.
type Lively struct {
	Out io.Writer
	// Gone is called with why.
	Gone context.CancelCauseFunc
}

// Write writes to Out.
func (l *Lively) Write(p []byte) (int, error) {
	n, err := l.Out.Write(p)
	if err != nil {
		l.Gone(fmt.Errorf("writing the story: %w", err))
	}
	return n, err
}
