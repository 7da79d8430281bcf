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
	"github.com/eldest-io/eldest/internal/memetcd"
)

// TestRegression16NoStartRevision: the watch has no start revision and requires a member with a
// leader. The snapshot is read after the watch is in place.
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

// TestChangesBetweenWatchAndSnapshot: a change that the snapshot shows is not reported again; a
// change that it does not show is reported.
func TestChangesBetweenWatchAndSnapshot(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
		o := <-s.watches
		o.created(10)
		r := <-s.reads
		o.send(putEvent(kv("k/a", 11, 11)))
		o.send(putEvent(kv("k/b", 12, 12)), putEvent(kv("k/c", 13, 13)))
		synctest.Wait()
		require.Empty(t, s.told(), "a change before the snapshot")
		r.answer(12, kv("k/a", 11, 11), kv("k/b", 12, 12))
		require.Equal(t, []string{"snapshot 12 with 2", "change 13 with 1"}, s.told())
	})
}

// TestChangesByRevision: all changes of one revision are reported together, and once, also when
// etcd's client repeats some of them after a reconnection.
func TestChangesByRevision(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
		o := s.place(t, 10)
		s.told()
		o.send(putEvent(kv("k/a", 11, 11)), putEvent(kv("k/b", 11, 11)), deleteEvent("k/a", 12))
		o.send()
		o.send(putEvent(kv("k/b", 11, 11)), deleteEvent("k/a", 12), putEvent(kv("k/b", 11, 13)), putEvent(kv("k/c", 13, 13)))
		o.send(deleteEvent("k/c", 13))
		require.Equal(t, []string{"change 11 with 2", "change 12 with 1", "change 13 with 2"}, s.told())
	})
}

// TestHeaders: a target receives etcd's response header before the changes that came with it.
func TestHeaders(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(0)
		target.Header = func(h *etcdserverpb.ResponseHeader) { s.note("member %d at %d", h.MemberId, h.Revision) }
		s.follow(t, target)
		o := s.place(t, 10)
		s.told()
		resp := clientv3.WatchResponse{Events: []*clientv3.Event{putEvent(kv("k/a", 11, 11)), deleteEvent("k/a", 12)}}
		memetcd.SetHeader(&resp, &etcdserverpb.ResponseHeader{MemberId: 7, Revision: 12})
		o.ch <- resp
		require.Equal(t, []string{"member 7 at 12", "change 11 with 1", "change 12 with 1"}, s.told())
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

// TestRegression5Compaction: the revision that the watch needs was compacted; the next snapshot is
// newer.
func TestRegression5Compaction(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
		s.place(t, 11).ch <- clientv3.WatchResponse{Canceled: true, CompactRevision: 20}
		synctest.Wait()
		s.place(t, 21).ch <- clientv3.WatchResponse{Canceled: true, CompactRevision: 30}
		s.place(t, 31)
		compacted := "interrupted: " + rpctypes.ErrCompacted.Error()
		require.Equal(t, []string{"snapshot 11 with 0", compacted, "snapshot 21 with 0", compacted, "snapshot 31 with 0"}, s.told())
	})
}

// TestOpeningTimesOut: a watch that is not confirmed is requested again, on another stream.
func TestOpeningTimesOut(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		begun := time.Now()
		s.follow(t, s.target(0))
		for _, stream := range []string{"", "1", "2"} {
			o := <-s.watches
			require.Equal(t, stream, o.stream)
			time.Sleep(timeout)
			synctest.Wait()
			require.Error(t, o.ctx.Err())
			(<-s.reads).answer(9) // etcd answers: the stream is at fault
		}
		s.place(t, 10)
		require.Equal(t, 3*(timeout+backoff), time.Since(begun))
		silent := "interrupted: " + eldest.ErrUnavailable.Error() + ": no watch within 1s"
		seen := "snapshot 9 with 0" // the answer of the read
		require.Equal(t, []string{seen, silent, seen, silent, seen, silent, "snapshot 10 with 0"}, s.told())
	})
}

// TestWithoutAnyWatch: if no stream can be opened, but reads are answered, the target receives
// their answers.
func TestWithoutAnyWatch(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		target := s.target(7)
		asked := 0
		target.Snapshot = func(*clientv3.GetResponse) bool { asked++; return asked == 3 }
		result, _ := s.follow(t, target)
		for range 3 {
			<-s.watches
			(<-s.reads).answer(9)
		}
		require.NoError(t, <-result)
	})
}

// TestStreamsAreFew: there are at most four streams, however often streams stop responding.
func TestStreamsAreFew(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
		for _, stream := range []string{"", "1", "2", "3", "", "1"} {
			require.Equal(t, stream, (<-s.watches).stream)
			(<-s.reads).answer(9)
		}
	})
}

// TestChannelThatDoesNotClose: a client that searches for another member may leave the channel of a
// cancelled watch open. Follow does not wait for it.
func TestChannelThatDoesNotClose(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.stuck = true
		s.follow(t, s.target(0))
		<-s.watches
		time.Sleep(timeout)
		(<-s.reads).answer(9)
		require.Equal(t, "1", (<-s.watches).stream)
	})
}

// TestStreamsAreSharedAndLeftTogether: many watches whose stream does not respond move to one new
// stream, not to one each.
func TestStreamsAreSharedAndLeftTogether(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for range 5 {
			s.follow(t, s.target(0))
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
	})
}

// TestSnapshotWithoutAnAnswer: each attempt has its time-out. After four attempts etcd counts as
// unavailable, and a new watch is opened.
func TestSnapshotWithoutAnAnswer(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
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
	})
}

// TestRefusedForGood: a permanent refusal is returned, and the request is not repeated.
func TestRefusedForGood(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for _, refusal := range []error{rpctypes.ErrPermissionDenied, status.Error(codes.Canceled, "grpc: the client connection is closing")} {
			result, _ := s.follow(t, s.target(0))
			o := <-s.watches
			o.created(10)
			(<-s.reads).fail(refusal)
			require.ErrorIs(t, <-result, refusal)

			// A closed client ends watches without a reason.
			result, _ = s.follow(t, s.target(0))
			close((<-s.watches).ch)
			(<-s.reads).fail(refusal)
			require.ErrorIs(t, <-result, refusal)
		}
		require.Empty(t, s.told())
	})
}

// TestEndsWithItsContext: Follow ends at once, whatever it waits for, with the cause, and without a
// goroutine left (which would keep the bubble from ending).
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
				s.follow(t, target)
				reach(t, s)
			})
		})
	}
}

// TestServerThatEndsEachWatch: the pauses grow. The server does not get fifty requests a second for
// ever.
func TestServerThatEndsEachWatch(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		failures := []int{}
		s.Backoff = func(attempt int) time.Duration {
			failures = append(failures, attempt)
			return time.Duration(attempt+1) * backoff
		}
		s.follow(t, s.target(0))
		for range 5 {
			close(s.place(t, 10).ch)
		}
		o := s.place(t, 10)
		time.Sleep(time.Minute)
		close(o.ch)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 0}, failures, "a watch that held for a while starts afresh")
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
