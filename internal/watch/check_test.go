package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/watch"
)

// probe returns a probe that reads "k/p" and is judged by agrees. It also switches the checks on.
func (s *stage) probe(agrees func() bool) func() (clientv3.Op, func(clientv3.OpResponse) bool) {
	s.WatchCheck = recheck
	return func() (clientv3.Op, func(clientv3.OpResponse) bool) {
		return clientv3.OpGet("k/p"), func(clientv3.OpResponse) bool { return agrees() }
	}
}

// checked follows a target with liveness checks, whose answers agrees judges, and confirms the watch at
// revision 10.
func (s *stage) checked(t *testing.T, target watch.Target, agrees func() bool) *opening {
	t.Helper()
	target.Probe = s.probe(agrees)
	s.follow(t, target)
	o := s.place(t, 10)
	s.told()
	return o
}

// hearing makes the target call f with the revision of each change before its Change.
func hearing(target watch.Target, f func(revision int64)) watch.Target {
	change := target.Change
	target.Change = func(revision int64, events []*clientv3.Event) bool {
		f(revision)
		return change(revision, events)
	}
	return target
}

// TestWatchCheckThatAgrees: a plain request is sent at intervals, and the target is not called.
func TestWatchCheckThatAgrees(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.checked(t, s.target(0), func() bool { return true })
		last := time.Now()
		for range 5 {
			r := s.asked(t)
			require.Equal(t, "k/p", string(r.op.KeyBytes()))
			require.LessOrEqual(t, time.Since(last), recheck)
			require.Greater(t, time.Since(last), recheck*9/10)
			last = time.Now()
			r.answer(10)
		}
		require.Empty(t, s.told())
	})
}

// TestWatchCheckDoubtsTwice: an answer that contradicts the stream may be newer than the stream. It
// is judged again after a short time. Only if it still contradicts the stream is the watch opened
// on another stream.
func TestWatchCheckDoubtsTwice(t *testing.T) {
	for name, arrives := range map[string]bool{"the change arrives": true, "the stream is deaf": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				agrees := true
				o := s.checked(t, hearing(s.target(0), func(int64) { agrees = true }), func() bool { return agrees })
				r := <-s.reads
				agrees = false
				r.answer(11)
				synctest.Wait()
				require.NoError(t, o.ctx.Err(), "given up after one answer")
				if arrives {
					o.send(putEvent(kv("k/p", 11, 11)))
					require.Equal(t, []string{"change 11 with 1"}, s.told())
					time.Sleep(timeout)
					synctest.Wait()
					require.NoError(t, o.ctx.Err())
					(<-s.reads).answer(11)
					require.Empty(t, s.told())
				} else {
					begun := time.Now()
					again := <-s.watches
					require.LessOrEqual(t, time.Since(begun), timeout+backoff)
					require.Equal(t, "1", again.stream)
					require.Error(t, o.ctx.Err())
					require.Equal(t, []string{"interrupted: " + eldest.ErrUnavailable.Error() + ": the watch missed a change"}, s.told())
					agrees = true
					again.created(11)
					(<-s.reads).answer(11)
					require.Equal(t, []string{"snapshot 11 with 0"}, s.told())
				}
			})
		})
	}
}

// TestStoppedFollowerTakesInBeforeItJudges: a process that was stopped between the two judgements
// finds the missing change and the due judgement at the same time, and handles the change first.
func TestStoppedFollowerTakesInBeforeItJudges(t *testing.T) {
	for range 30 { // which of the two it takes first is random
		play(t, func(t *testing.T, s *stage) {
			agrees := true
			o := s.checked(t, hearing(s.target(0), func(revision int64) {
				if revision == 11 {
					time.Sleep(10 * timeout) // stopped
				}
				agrees = revision == 12
			}), func() bool { return agrees })
			r := <-s.reads
			agrees = false
			r.answer(12)
			synctest.Wait()
			o.send(putEvent(kv("k/a", 11, 11)))
			time.Sleep(time.Millisecond)
			o.send(putEvent(kv("k/p", 12, 12)))
			time.Sleep(10 * timeout)
			require.Equal(t, []string{"change 11 with 1", "change 12 with 1"}, s.told())
			require.NoError(t, o.ctx.Err(), "given up although all had come")
		})
	}
}

// TestEnoughBesideAnAnswer: a change that is handled before an answer is judged may be enough.
func TestEnoughBesideAnAnswer(t *testing.T) {
	for range 30 { // which of the two it takes first is random
		play(t, func(t *testing.T, s *stage) {
			target := hearing(s.target(12), func(revision int64) {
				if revision == 11 {
					time.Sleep(timeout) // stopped
				}
			})
			target.Probe = s.probe(func() bool { return true })
			result, _ := s.follow(t, target)
			o := s.place(t, 10)
			r := <-s.reads
			o.send(putEvent(kv("k/a", 11, 11)))
			synctest.Wait()
			o.send(putEvent(kv("k/p", 12, 12)))
			r.answer(12)
			require.NoError(t, <-result)
		})
	}
}

// TestSlowWatchCheckDelaysNoChange: changes are reported while a check waits for its answer. The
// late answer has no effect.
func TestSlowWatchCheckDelaysNoChange(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		o := s.checked(t, s.target(0), func() bool { return true })
		r := <-s.reads
		begun := time.Now()
		o.send(putEvent(kv("k/a", 11, 11)))
		require.Equal(t, []string{"change 11 with 1"}, s.told())
		require.Zero(t, time.Since(begun))
		time.Sleep(timeout / 2)
		r.answer(11)
		require.Empty(t, s.told())
	})
}

// TestRegression9SilentEtcd: etcd counts as unavailable within WatchCheck + 4 Timeout if no check
// is answered. It does not if a single check was lost.
func TestRegression9SilentEtcd(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.checked(t, s.target(0), func() bool { return true })
		lost := <-s.reads
		<-lost.ctx.Done()
		(<-s.reads).answer(10) // another member
		require.Empty(t, s.told())

		begun := time.Now()
		told := make(chan struct{})
		go func() {
			for {
				select {
				case <-s.reads: // not answered
				case <-told:
					return
				}
			}
		}()
		again := <-s.watches
		close(told)
		require.Equal(t, "1", again.stream)
		require.LessOrEqual(t, time.Since(begun), recheck+4*timeout+backoff)
		require.Contains(t, s.told()[0], "interrupted: "+eldest.ErrUnavailable.Error())
	})
}

func TestWatchCheckRefused(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(0)
		target.Probe = s.probe(func() bool { return true })
		result, _ := s.follow(t, target)
		s.place(t, 10)
		(<-s.reads).fail(rpctypes.ErrPermissionDenied)
		require.ErrorIs(t, <-result, rpctypes.ErrPermissionDenied)
	})
}

func TestNoWatchChecks(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(0)
		target.Probe = s.probe(func() bool { t.Error("asked"); return true })
		s.WatchCheck = -1
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := start(func() error { return s.Follow(ctx, target) })
		s.place(t, 10)
		select {
		case <-s.reads:
			t.Fatal("a recheck")
		case err := <-result:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}
