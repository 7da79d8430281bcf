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
