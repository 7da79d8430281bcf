package concurrency

// Slots returns the number of keys for which a session has state.
func Slots(s *Session) int {
	s.mu.Lock()
	g := s.group
	s.mu.Unlock()
	if g == nil {
		return 0
	}
	g.loop.Lock()
	defer g.loop.Unlock()
	return len(g.candidacies)
}

// Ending ends the candidates of a session, and calls f when they cannot begin anything any more but
// do not know that they have ended.
func Ending(s *Session, f func()) {
	s.mu.Lock()
	g := s.group
	s.mu.Unlock()
	g.cancel(errReleased)
	f()
	g.end(errReleased)
}
