package watch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/watch"
)

// What waits while a function of the target runs is bounded. Beyond the limit it is dropped, and the
// target receives a snapshot instead.
//
// Fails if everything waits, or if the watch goes on after changes were dropped.
func TestMoreWaitsThanMay(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target, handled := slow(s)
		s.follow(t, target)
		o := s.place(t, 10)
		for revision := int64(11); revision <= 14; revision++ { // one is being handled, three wait
			o.send(putEvent(kv("k/1", 11, revision)))
			synctest.Wait()
		}
		handled <- struct{}{}
		require.Equal(t, []string{"snapshot 10 with 0", "change 11 with 1", "change 12 with 1", "change 13 with 1", "change 14 with 1"}, s.told())
	})
	play(t, func(t *testing.T, s *stage) {
		target, handled := slow(s)
		s.follow(t, target)
		o := s.place(t, 10)
		o.send(putEvent(kv("k/1", 11, 11)))
		synctest.Wait()
		var events []*clientv3.Event
		for revision := int64(12); revision <= 15; revision++ {
			events = append(events, putEvent(kv("k/1", 11, revision)))
		}
		o.send(events[:2]...)
		o.send(events[2:]...)
		o.send(putEvent(kv("k/1", 11, 16)))
		synctest.Wait()
		handled <- struct{}{}
		s.place(t, 16, kv("k/1", 11, 16)).send(putEvent(kv("k/1", 11, 17)))
		require.Equal(t, []string{
			"snapshot 10 with 0", "change 11 with 1",
			"interrupted: more than 3 changes waited to be handled",
			"snapshot 16 with 1", "change 17 with 1",
		}, s.told())
	})
}

// slow returns a target for which three events may wait. It handles revision 11 until the channel
// receives.
func slow(s *stage) (target watch.Target, handled chan struct{}) {
	handled = make(chan struct{})
	target = hearing(s.target(0), func(revision int64) {
		if revision == 11 {
			<-handled
		}
	})
	target.Waiting = 3
	return target, handled
}
