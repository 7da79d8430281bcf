package load

import (
	"sync"
	"time"

	"github.com/eldest-io/eldest/observe"
)

// ghosts are the keys of those who left without a word: they may stay until the lease
// expires, which an election of etcd's prolongs.
type ghosts struct {
	mu   sync.Mutex
	keys map[string]time.Time
}

func (g *ghosts) left(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[key] = time.Now()
}

// since is when a key was left, and whether it was.
func (g *ghosts) since(key string) (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.keys[key]
	return at, ok
}

// forget drops those that had left before the queue was asked for and are not in it: so
// the list does not grow with the run.
func (g *ghosts) forget(queue []observe.Entry, asked time.Time) {
	there := make(map[string]bool, len(queue))
	for _, e := range queue {
		there[e.Key] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, at := range g.keys {
		if !there[key] && at.Before(asked) {
			delete(g.keys, key)
		}
	}
}
