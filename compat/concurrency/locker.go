package concurrency

import "sync"

// locker is a mutex with the interface of package sync.
type locker struct{ mutex *Mutex }

// NewLocker returns a mutex as a sync.Locker, with the client's context. Lock and Unlock panic
// where Mutex would return an error, because a sync.Locker cannot return one.
func NewLocker(s *Session, pfx string) sync.Locker { return &locker{NewMutex(s, pfx)} }

func (l *locker) Lock() {
	if err := l.mutex.Lock(life(l.mutex.session.client)); err != nil {
		panic(err)
	}
}

func (l *locker) Unlock() {
	if err := l.mutex.Unlock(life(l.mutex.session.client)); err != nil {
		panic(err)
	}
}
