package etcdtest

import (
	"bytes"
	"sync"
)

// Paper collects what is written to it, from any goroutine. Its zero value is empty.
type Paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (p *Paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// String is all that was written.
func (p *Paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
