package concurrency

// Slots counts the keys of which a session knows anything.
func Slots(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.slots)
}
