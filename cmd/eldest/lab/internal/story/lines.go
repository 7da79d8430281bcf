package story

import (
	"encoding/json"
	"io"
	"sync"
)

// Lines tells a story to programs: one JSON value a line. Safe for concurrent use, where
// To alone is set before.
type Lines struct {
	To io.Writer
	mu sync.Mutex
}

// Print writes one line. Nobody is left to be told when it cannot be written.
func (l *Lines) Print(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	enc := json.NewEncoder(l.To)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
