package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// TestRegression16NoStartRevision: the watch names no revision, asks for a member
// with a leader, and the snapshot comes after it is in place.
func TestRegression16NoStartRevision(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		o := <-s.watches
		require.Equal(t, "k/", o.key)
		require.Equal(t, "k0", string(o.op.RangeBytes()))
		require.Zero(t, o.op.Rev())
		require.True(t, o.leader)
		require.Empty(t, o.stream, "the stream that all watches of the client share")
		synctest.Wait()
		select {
		case <-s.reads:
			t.Fatal("read before the watch was in place")
		default:
		}
		o.created(10)
		r := <-s.reads
		require.Equal(t, "k/", string(r.op.KeyBytes()))
		require.Equal(t, "k0", string(r.op.RangeBytes()))
		require.Zero(t, r.op.Rev())
		require.False(t, r.op.IsSerializable(), "an old answer would leave a gap")
		r.answer(10)
		require.Equal(t, []string{"snapshot 10 with 0"}, s.told())
		ended(t, result, cancel)
		synctest.Wait()
		require.Error(t, o.ctx.Err(), "the watch lives on")
	})
}

// TestChangesBetweenWatchAndSnapshot: what the snapshot shows already is not told
// again, what it does not show is.
func TestChangesBetweenWatchAndSnapshot(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		o := <-s.watches
		o.created(10)
		r := <-s.reads
		o.send(putEvent(kv("k/a", 11, 11)))
		o.send(putEvent(kv("k/b", 12, 12)), putEvent(kv("k/c", 13, 13)))
		synctest.Wait()
		require.Empty(t, s.told(), "a change before the snapshot")
		r.answer(12, kv("k/a", 11, 11), kv("k/b", 12, 12))
		require.Equal(t, []string{"snapshot 12 with 2", "change 13 with 1"}, s.told())
		ended(t, result, cancel)
	})
}

// TestChangesByRevision: all of one revision at once, each revision once, also
// when the client's own reconnection tells some of them again.
func TestChangesByRevision(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		o := s.place(t, 10)
		s.told()
		o.send(putEvent(kv("k/a", 11, 11)), putEvent(kv("k/b", 11, 11)), deleteEvent("k/a", 12))
		o.send()
		o.send(putEvent(kv("k/b", 11, 11)), deleteEvent("k/a", 12), putEvent(kv("k/b", 11, 13)), putEvent(kv("k/c", 13, 13)))
		o.send(deleteEvent("k/c", 13))
		require.Equal(t, []string{"change 11 with 2", "change 12 with 1", "change 13 with 2"}, s.told())
		ended(t, result, cancel)
	})
}

// TestHeaders: a target is told what etcd says of itself, before the change that it said
// it with.
func TestHeaders(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(0)
		target.Header = func(h *etcdserverpb.ResponseHeader) { s.note("member %d at %d", h.MemberId, h.Revision) }
		result, cancel := s.follow(t, target)
		o := s.place(t, 10)
		s.told()
		o.ch <- clientv3.WatchResponse{
			Header: &etcdserverpb.ResponseHeader{MemberId: 7, Revision: 12},
			Events: []*clientv3.Event{putEvent(kv("k/a", 11, 11)), deleteEvent("k/a", 12)},
		}
		require.Equal(t, []string{"member 7 at 12", "change 11 with 1", "change 12 with 1"}, s.told())
		ended(t, result, cancel)
	})
}

// TestEnough: the watch outlives Follow, and ends with its context.
func TestEnough(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(10))
		o := s.place(t, 10)
		require.NoError(t, <-result, "enough at the snapshot")
		require.NoError(t, o.ctx.Err())
		cancel(context.Canceled)
		synctest.Wait()
		require.Error(t, o.ctx.Err())

		result, cancel = s.follow(t, s.target(12))
		o = s.place(t, 10)
		o.send(putEvent(kv("k/a", 11, 11)), putEvent(kv("k/b", 12, 12)), putEvent(kv("k/c", 13, 13)))
		require.NoError(t, <-result, "enough at a change")
		require.NoError(t, o.ctx.Err())
		cancel(context.Canceled)
		synctest.Wait()
		require.Error(t, o.ctx.Err())
		require.Equal(t, []string{"snapshot 10 with 0", "snapshot 10 with 0", "change 11 with 1", "change 12 with 1"}, s.told())
	})
}

// TestRegression5Compaction: the wanted history is gone; the next snapshot starts
// behind it.
func TestRegression5Compaction(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		s.place(t, 11).ch <- clientv3.WatchResponse{Canceled: true, CompactRevision: 20}
		synctest.Wait()
		s.place(t, 21).ch <- clientv3.WatchResponse{Canceled: true, CompactRevision: 30}
		s.place(t, 31)
		compacted := "interrupted: " + rpctypes.ErrCompacted.Error()
		require.Equal(t, []string{"snapshot 11 with 0", compacted, "snapshot 21 with 0", compacted, "snapshot 31 with 0"}, s.told())
		ended(t, result, cancel)
	})
}

// TestOpeningTimesOut: a watch that is not confirmed is asked for again, on
// another stream.
func TestOpeningTimesOut(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		begun := time.Now()
		result, cancel := s.follow(t, s.target(0))
		for _, stream := range []string{"", "1", "2"} {
			o := <-s.watches
			require.Equal(t, stream, o.stream)
			time.Sleep(timeout)
			synctest.Wait()
			require.Error(t, o.ctx.Err())
			(<-s.reads).answer(9) // etcd is there: the stream is at fault
		}
		s.place(t, 10)
		require.Equal(t, 3*(timeout+backoff), time.Since(begun))
		silent := "interrupted: " + eldest.ErrUnavailable.Error() + ": no watch within 1s"
		seen := "snapshot 9 with 0" // what the question showed: better than nothing
		require.Equal(t, []string{seen, silent, seen, silent, seen, silent, "snapshot 10 with 0"}, s.told())
		ended(t, result, cancel)
	})
}

// TestWithoutAnyWatch: where no stream ever opens, but questions are answered, the
// target learns by them.
func TestWithoutAnyWatch(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(7)
		asked := 0
		target.Snapshot = func(*clientv3.GetResponse) bool { asked++; return asked == 3 }
		result, cancel := s.follow(t, target)
		defer cancel(nil)
		for range 3 {
			<-s.watches
			(<-s.reads).answer(9)
		}
		require.NoError(t, <-result)
	})
}

// TestStreamsAreFew: however often streams fall silent, there are four of them.
func TestStreamsAreFew(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		for _, stream := range []string{"", "1", "2", "3", "", "1"} {
			require.Equal(t, stream, (<-s.watches).stream)
			(<-s.reads).answer(9)
		}
		ended(t, result, cancel)
	})
}

// TestChannelThatDoesNotClose: a client that looks for a member to go on with may
// leave the channel of a cancelled watch open. Nobody waits for it.
func TestChannelThatDoesNotClose(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.stuck = true
		result, cancel := s.follow(t, s.target(0))
		<-s.watches
		time.Sleep(timeout)
		(<-s.reads).answer(9)
		require.Equal(t, "1", (<-s.watches).stream)
		ended(t, result, cancel)
	})
}

// TestStreamsAreSharedAndLeftTogether: many watches whose stream fell silent move
// to one new stream, not to one each.
func TestStreamsAreSharedAndLeftTogether(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var ends []func()
		for range 5 {
			result, cancel := s.follow(t, s.target(0))
			ends = append(ends, func() { ended(t, result, cancel) })
		}
		require.Empty(t, (<-s.watches).stream, "the others follow it")
		time.Sleep(timeout)
		for range 5 {
			(<-s.reads).answer(9)
		}
		for range 5 {
			o := <-s.watches
			require.Equal(t, "1", o.stream)
			o.created(10)
		}
		for _, end := range ends {
			end()
		}
	})
}

// TestSnapshotWithoutAnAnswer: each attempt has its time-out; four in vain are
// silence, and then everything begins anew.
func TestSnapshotWithoutAnAnswer(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result, cancel := s.follow(t, s.target(0))
		o := <-s.watches
		o.created(10)
		begun, reads := time.Now(), 0
		for o.ctx.Err() == nil {
			select {
			case r := <-s.reads:
				reads++
				<-r.ctx.Done()
				require.LessOrEqual(t, time.Since(r.at), timeout)
			case <-o.ctx.Done():
			}
			synctest.Wait()
		}
		require.Equal(t, 4, reads)
		require.Equal(t, 4*timeout, time.Since(begun))
		require.Contains(t, s.told()[0], eldest.ErrUnavailable.Error()+": for 4s")
		s.place(t, 20)
		require.Equal(t, []string{"snapshot 20 with 0"}, s.told())
		ended(t, result, cancel)
	})
}

// TestRefusedForGood is told, and not tried again.
func TestRefusedForGood(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for _, refusal := range []error{rpctypes.ErrPermissionDenied, status.Error(codes.Canceled, "grpc: the client connection is closing")} {
			result, _ := s.follow(t, s.target(0))
			o := <-s.watches
			o.created(10)
			(<-s.reads).fail(refusal)
			require.ErrorIs(t, <-result, refusal)

			// A client that is closed ends watches without a word.
			result, _ = s.follow(t, s.target(0))
			close((<-s.watches).ch)
			(<-s.reads).fail(refusal)
			require.ErrorIs(t, <-result, refusal)
		}
		require.Empty(t, s.told())
	})
}

// TestEndsWithItsContext: at once, whatever it is waiting for, with the cause, and
// with no goroutine left (which would not let the bubble end).
func TestEndsWithItsContext(t *testing.T) {
	for name, reach := range map[string]func(t *testing.T, s *stage){
		"opening":  func(_ *testing.T, s *stage) { <-s.watches },
		"snapshot": func(_ *testing.T, s *stage) { (<-s.watches).created(1); <-s.reads },
		"quiet":    func(t *testing.T, s *stage) { s.place(t, 1) },
		"recheck": func(t *testing.T, s *stage) {
			s.place(t, 1)
			time.Sleep(recheck)
			<-s.reads
		},
		"back-off": func(t *testing.T, s *stage) {
			o := s.place(t, 1)
			close(o.ch)
			synctest.Wait()
		},
		"an attempt's back-off": func(_ *testing.T, s *stage) {
			(<-s.watches).created(1)
			(<-s.reads).fail(errors.New("away"))
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				target := s.target(0)
				target.Probe = s.probe(func() bool { return true })
				result, cancel := s.follow(t, target)
				reach(t, s)
				ended(t, result, cancel)
			})
		})
	}
}

// TestServerThatEndsEachWatch is not asked fifty times a second for ever.
func TestServerThatEndsEachWatch(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		failures := []int{}
		s.Backoff = func(attempt int) time.Duration {
			failures = append(failures, attempt)
			return time.Duration(attempt+1) * backoff
		}
		result, cancel := s.follow(t, s.target(0))
		for range 5 {
			close(s.place(t, 10).ch)
		}
		o := s.place(t, 10)
		time.Sleep(time.Minute)
		close(o.ch)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 0}, failures, "a watch that held for a while starts afresh")
		ended(t, result, cancel)
	})
}

func TestDeadContext(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		require.ErrorIs(t, s.Follow(ctx, s.target(0)), errEnough)
		require.Empty(t, s.told())
	})
}
