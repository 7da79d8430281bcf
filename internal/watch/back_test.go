package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An etcd that was restored from a backup has a lower revision than the target has received, and
// its answers agree with the known past. The watch would wait until the revisions that were
// received before come again. So it is opened again, and the target receives a snapshot of the
// present revision.
//
// Fails if an answer is judged by its keys alone.
func TestHistoryWentBack(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(0)
		target.Probe = s.probe(func() bool { return true })
		s.follow(t, target)
		s.place(t, 10)
		begun := time.Now()
		(<-s.reads).answer(5)
		o := s.place(t, 6)
		require.Less(t, time.Since(begun), recheck+recheck/10+2*backoff, "deaf for longer")
		o.send(putEvent(kv("k/1", 7, 7)))
		require.Equal(t, []string{
			"snapshot 10 with 0",
			"interrupted: the revision of etcd went back: was it restored from a backup?",
			"snapshot 6 with 0",
			"change 7 with 1",
		}, s.told())
	})
}
