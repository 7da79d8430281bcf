package dropin

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// owns asks etcd whether a mutex is held.
func (s *stage) owns(m mutex) bool {
	resp, err := s.cli.Txn(s.ctx).If(m.IsOwner()).Commit()
	s.check(err == nil, "etcd refuses the comparison: %v", err)
	return resp.Succeeded
}

// mutex returns a mutex on a session of its own.
func (s *stage) mutex() (session, mutex) {
	made := s.session(options{})
	return made, s.newMutex(made, s.name)
}

// mutexRows are about mutexes.
var mutexRows = []behaviour{
	{
		what: "a mutex is held by one session at a time, in the order of their keys",
		holds: func(s *stage) {
			one, m := s.mutex()
			s.check(m.Key() == "" && m.Header() == nil, "it has a key before")
			s.check(m.Lock(s.ctx) == nil, "error")
			s.check(m.Key() == s.keyOf(one), "its key is %q", m.Key())
			s.check(m.Header().GetRevision() > 0 && m.Header().GetClusterId() != 0, "the header is none of etcd's")
			s.check(s.owns(m), "it does not own it")
			second, next := s.mutex()
			locked := after(func() error { return next.Lock(s.ctx) })
			s.inLine(second)
			time.Sleep(while)
			s.check(len(locked) == 0, "two hold it")
			s.check(m.Unlock(s.ctx) == nil, "error")
			err, ok := comes(locked, s.soon)
			s.check(ok && err == nil, "the next one does not get it: %v", err)
			s.check(s.owns(next) && !s.owns(m), "another one owns it")
			s.check(next.Header().GetRevision() >= m.Header().GetRevision(), "the header is old")
			s.check(next.Unlock(s.ctx) == nil && len(s.line()) == 0, "keys are left")
		},
	},
	{
		what: "TryLock locks a free mutex, and returns ErrLocked for one that is held",
		holds: func(s *stage) {
			_, m := s.mutex()
			_, other := s.mutex()
			s.check(m.TryLock(s.ctx) == nil, "error")
			s.check(s.owns(m), "it does not own it")
			s.check(is(other.TryLock(s.ctx), s.errLocked), "the other one gets something else")
			s.check(len(s.line()) == 1, "its key is there")
			s.check(is(other.Unlock(s.ctx), s.errReleased), "it can unlock")
			s.check(m.Unlock(s.ctx) == nil, "error")
			s.check(other.TryLock(s.ctx) == nil && s.owns(other), "it is not free")
		},
	},
	{
		what:   "TryLock that fails was not queued",
		theirs: "it was queued",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.valid(m.Lock(s.ctx))
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			changes := s.cli.Watch(ctx, s.name+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
			<-changes
			_, other := s.mutex()
			s.check(is(other.TryLock(s.ctx), s.errLocked), "it is not locked")
			// Events of earlier changes arrive before the event of this one.
			marker := s.name + "/marker"
			_, err := s.cli.Put(s.ctx, marker, "")
			s.valid(err)
			told, ok := comes(changes, patience)
			s.check(ok && len(told.Events) > 0, "INVALID: no change is told of")
			s.check(string(told.Events[0].Kv.Key) == marker, "it was queued")
		},
	},
	{
		what: "a session can lock again what it has locked, by the same mutex or another one of the prefix",
		holds: func(s *stage) {
			made, m := s.mutex()
			other := s.newMutex(made, s.name)
			s.check(m.Lock(s.ctx) == nil && m.Lock(s.within(patience)) == nil, "error")
			s.check(other.Lock(s.within(patience)) == nil && other.TryLock(s.within(patience)) == nil, "error")
			s.check(s.owns(other) && other.Key() == m.Key(), "another key")
			s.check(m.Unlock(s.ctx) == nil, "error")
			s.check(len(s.line()) == 0 && !s.owns(other), "it is locked still")
			s.check(other.Unlock(s.ctx) == nil, "error")
		},
	},
	{
		what: "Unlock of a mutex that is not locked is ErrLockReleased",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.check(is(m.Unlock(s.ctx), s.errReleased), "before the first time it is something else")
			s.valid(m.Lock(s.ctx))
			s.check(m.Unlock(s.ctx) == nil, "error")
			s.check(is(m.Unlock(s.ctx), s.errReleased), "the second time it is something else")
			s.check(m.Key() == "\x00" && !s.owns(m), "its key is %q", m.Key())
		},
	},
	{
		what: "a lock whose context ends returns that error, unwrapped, and its key is deleted",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.valid(m.Lock(s.ctx))
			var rec etcdtest.Recorder
			other := s.newMutex(s.sessionOn(s.cluster.Client(s.T, rec.Attach), options{}), s.name)
			ctx, cancel := context.WithCancel(s.ctx)
			result := after(func() error { return other.Lock(ctx) })
			s.waits(&rec, m.Key())
			cancel()
			err, ok := comes(result, patience)
			s.check(ok && is(err, context.Canceled), "it returns %v", err)
			s.check(len(s.line()) == 1, "its key is there")
			s.check(is(other.Unlock(s.ctx), s.errReleased), "it can unlock")
			s.check(s.owns(m), "the holder has lost it")
		},
	},
	{
		what: "a waiter for a mutex that has lost its key gets ErrSessionExpired when it would be the oldest, or before",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.valid(m.Lock(s.ctx))
			second, other := s.mutex()
			result := after(func() error { return other.Lock(s.ctx) })
			s.inLine(second)
			s.delete(s.keyOf(second))
			s.valid(m.Unlock(s.ctx))
			err, ok := comes(result, patience)
			s.check(ok && is(err, s.errExpired), "it returns %v", err)
		},
	},
	{
		what:   "a waiter for a mutex that has lost its lease gets ErrSessionExpired at once",
		theirs: "it continues to wait",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.valid(m.Lock(s.ctx))
			second, other := s.mutex()
			result := after(func() error { return other.Lock(s.within(patience)) })
			s.inLine(second)
			_, err := s.cli.Revoke(s.ctx, second.Lease())
			s.valid(err)
			err, ok := comes(result, s.soon)
			s.check(ok, "it continues to wait")
			s.check(is(err, s.errExpired), "it returns %v", err)
		},
	},
	{
		what:   "Unlock deletes the key of its lock, and not that of a later lock of the session",
		theirs: "the later lock is deleted",
		holds: func(s *stage) {
			made, m := s.mutex()
			s.valid(m.Lock(s.ctx))
			s.delete(m.Key())
			later := s.newMutex(made, s.name)
			s.valid(later.Lock(s.ctx))
			s.check(m.Unlock(s.ctx) == nil, "error")
			s.check(s.owns(later), "the later lock is deleted")
		},
	},
	{
		what:   "IsOwner of a mutex that was never locked is false",
		theirs: "etcd refuses the comparison",
		holds: func(s *stage) {
			_, m := s.mutex()
			s.check(!s.owns(m), "it owns it")
		},
	},
	{
		what: "a locker locks and unlocks, and panics where a mutex returns an error",
		holds: func(s *stage) {
			one, two := s.newLocker(s.session(options{}), s.name), s.newLocker(s.session(options{}), s.name)
			one.Lock()
			locked := after(func() error { two.Lock(); return nil })
			_, early := comes(locked, while)
			s.check(!early, "two hold it")
			one.Unlock()
			_, ok := comes(locked, patience)
			s.check(ok, "the other one does not get it")
			two.Unlock()
			s.check(panics(two.Unlock), "Unlock of what is not locked does not panic")
			s.check(len(s.line()) == 0, "keys are left")
		},
	},
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
