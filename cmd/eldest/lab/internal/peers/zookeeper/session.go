package zookeeper

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// session follows the state of a client's session. The library calls event in the order of the changes.
type session struct {
	mu        sync.Mutex
	connected bool
	number    int // of sessions that have expired
	// begun is closed at the first session.
	begun chan struct{}
}

func newSession() *session { return &session{begun: make(chan struct{})} }

func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected = e.State == zk.StateHasSession
	if e.State == zk.StateExpired {
		s.number++
	}
	if s.connected && s.begun != nil {
		close(s.begun)
		s.begun = nil
	}
}

// current returns the number of the session, which changes when the client is told that it has expired.
func (s *session) current() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// alive reports whether the session of that number is connected.
func (s *session) alive(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected && s.number == number
}
