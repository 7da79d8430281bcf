package election_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// lossy is a KV whose transactions are lost, late, answered to nobody, or refused.
func lossy(kv clientv3.KV, late *sync.WaitGroup, quiet func() bool, log func(string, ...any)) clientv3.KV {
	commit := func(txn *etcdtest.Txn, ctx context.Context, how string) (*clientv3.TxnResponse, error) {
		resp, err := txn.Commit(ctx)
		kind := "get"
		if txn.Then[0].IsPut() {
			kind = "put"
		} else if txn.Then[0].IsDelete() {
			kind = "delete"
		}
		if kind != "get" {
			cmp := int64(-1)
			if len(txn.If) > 0 {
				if x, ok := txn.If[0].GetCompare().TargetUnion.(*pb.Compare_CreateRevision); ok {
					cmp = x.CreateRevision
				}
			}
			var rev int64
			okk := false
			if err == nil {
				rev, okk = resp.Header.Revision, resp.Succeeded
			}
			log("%s %s %s if create=%d -> %v rev %d %v", string(txn.Then[0].KeyBytes()), how, kind, cmp, okk, rev, err)
		}
		return resp, err
	}
	return etcdtest.WithTxns(kv, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if quiet() {
			return commit(txn, txn.Context, "now")
		}
		writes := len(txn.Then) > 0 && !txn.Then[0].IsGet()
		switch n := rand.IntN(100); {
		case n < 8:
			return nil, context.DeadlineExceeded
		case n < 16:
			if _, err := commit(txn, context.WithoutCancel(txn.Context), "unanswered"); err != nil {
				return nil, err
			}
			return nil, context.DeadlineExceeded
		case n < 28 && writes:
			late.Go(func() {
				time.Sleep(rand.N(60 * time.Millisecond))
				_, _ = commit(txn, context.WithoutCancel(txn.Context), "late")
			})
			if rand.IntN(2) == 0 {
				return nil, context.DeadlineExceeded
			}
			<-txn.Context.Done()
			return nil, txn.Context.Err()
		case n < 33 && writes && txn.Then[0].IsDelete():
			return nil, rpctypes.ErrPermissionDenied
		case n < 60:
			time.Sleep(rand.N(5 * time.Millisecond))
		}
		return commit(txn, txn.Context, "now")
	})
}

// TestStorm has candidates of two sessions do everything at once over a KV that loses,
// delays and refuses: nobody removes keys by hand, so no candidacy may end with ErrDeposed,
// no token may win twice, and nothing may stay. It lasts for a second or, with STORM=seconds,
// longer.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	end := storming(t)
	for round := 0; time.Now().Before(end); round++ {
		s.Election = fmt.Sprintf("storm-%d", round)
		s.storm(round)
	}
}

func (s *stage) storm(round int) {
	t := s.T
	var late sync.WaitGroup
	var mu sync.Mutex
	calm := false
	quiet := func() bool { mu.Lock(); defer mu.Unlock(); return calm }
	wins := map[int64][]eldest.Token{}
	deposed := 0
	var bad []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		bad = append(bad, fmt.Sprintf(format, args...))
	}
	var lines []string
	trace := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
	}
	session := s.session(s.Admin)
	sessions := []*lease.Session{session, s.session(s.Admin)}
	var cands []*election.Candidate
	kvs := []clientv3.KV{lossy(s.Admin, &late, quiet, trace), lossy(s.Admin, &late, quiet, trace)}
	for i := range 4 {
		owner := sessions[i/3]
		cands = append(cands, s.candidate(fmt.Sprint(i), on(owner), func(cfg *election.Config) {
			cfg.KV = kvs[i%2]
			cfg.Timeout = 40 * time.Millisecond
			cfg.Backoff = func(int) time.Duration { return rand.N(5*time.Millisecond) + time.Millisecond }
			cfg.Hooks.Won = func(e election.WonEvent) {
				mu.Lock()
				wins[int64(owner.ID())] = append(wins[int64(owner.ID())], e.Token)
				mu.Unlock()
			}
			cfg.Hooks.Registered = func(e election.RegisteredEvent) {
				trace("  c%d %s registered %d adopted %v at %s", i, e.Key, e.Token, e.Adopted, e.At.Format("05.000000"))
			}
			cfg.Hooks.Ended = func(e election.EndedEvent) {
				trace("  c%d %s ended %d: %v at %s", i, e.Key, e.Token, e.Cause, e.At.Format("05.000000"))
				if errors.Is(e.Cause, eldest.ErrDeposed) {
					mu.Lock()
					deposed++
					mu.Unlock()
					note("deposed token %d: %v", e.Token, e.Cause)
				}
			}
		}))
	}
	stop := time.Now().Add(1500 * time.Millisecond)
	var all sync.WaitGroup
	for _, c := range cands {
		all.Go(func() {
			for time.Now().Before(stop) {
				ctx, cancel := context.WithTimeout(s.Ctx, rand.N(80*time.Millisecond)+time.Millisecond)
				var l *election.Leadership
				var err error
				switch rand.IntN(4) {
				case 0:
					l, err = c.Try(ctx)
				case 1:
					if _, err = c.Register(ctx); err == nil {
						l, err = c.Await(ctx)
					}
				default:
					l, err = c.Campaign(ctx)
				}
				if err == nil {
					switch rand.IntN(4) {
					case 0:
						_ = l.Resign(ctx)
					case 1:
						l.Retire(nil)
					case 2:
						_ = l.Lead(ctx, func(ctx context.Context) error { time.Sleep(rand.N(3 * time.Millisecond)); return nil })
					case 3:
						_ = l.Proclaim(ctx, []byte("p"))
						_ = l.Resign(ctx)
						go func() { _ = l.Resign(s.Ctx) }()
					}
				}
				cancel()
			}
		})
		all.Go(func() {
			for time.Now().Before(stop) {
				time.Sleep(rand.N(40 * time.Millisecond))
				ctx, cancel := context.WithTimeout(s.Ctx, rand.N(60*time.Millisecond)+time.Millisecond)
				switch rand.IntN(3) {
				case 0:
					_ = c.Withdraw(ctx)
				case 1:
					_, _ = c.StepBack(ctx)
				case 2:
					_ = c.Retire(c.Status().Token, nil)
				}
				cancel()
			}
		})
	}
	all.Wait()
	mu.Lock()
	calm = true
	mu.Unlock()
	for i, c := range cands {
		ctx, cancel := context.WithTimeout(s.Ctx, 20*time.Second)
		require.NoError(t, c.Close(ctx), "round %d close %d", round, i)
		cancel()
	}
	late.Wait()
	for i := 0; len(s.Queue()) > 0; i++ {
		if i > 1000 {
			require.Empty(t, s.Queue(), "round %d: a key stays", round)
		}
		time.Sleep(10 * time.Millisecond)
	}
	// Without the mutex, which the requests of what is still looked out for take.
	for _, x := range sessions {
		require.NoError(t, x.Err())
		require.NoError(t, x.Close(s.Ctx))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(bad) > 0 {
		t.Log(strings.Join(lines, "\n"))
	}
	require.Empty(t, bad, "round %d", round)
	n := 0
	for _, tokens := range wins {
		n += len(tokens)
		seen := map[eldest.Token]bool{}
		for _, token := range tokens {
			require.False(t, seen[token], "round %d: token %d twice", round, token)
			seen[token] = true
		}
	}
	t.Logf("round %d: %d wins", round, n)
}

// TestStormOfResumes is the same with one session that is abandoned and resumed.
func TestStormOfResumes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	end := storming(t)
	for round := 0; time.Now().Before(end); round++ {
		s.Election = fmt.Sprintf("resumed-%d", round)
		var late sync.WaitGroup
		var mu sync.Mutex
		var lines, bad []string
		trace := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
		}
		kv := lossy(s.Admin, &late, func() bool { return false }, trace)
		session, err := lease.Open(s.Ctx, lease.Config{Lease: s.Admin, TTL: time.Minute})
		require.NoError(t, err)
		n := 0
		for phase := range 6 {
			var all sync.WaitGroup
			mine := session
			c, err := election.New(election.Config{
				Election: s.Election, Session: session, KV: kv, Watcher: s.Admin, Timeout: 40 * time.Millisecond,
				Backoff: func(int) time.Duration { return rand.N(5*time.Millisecond) + time.Millisecond },
				Hooks: election.Hooks{
					Registered: func(e election.RegisteredEvent) { trace("  p%d registered %d %v", phase, e.Token, e.Adopted) },
					Won:        func(e election.WonEvent) { mu.Lock(); n++; mu.Unlock() },
					Ended: func(e election.EndedEvent) {
						trace("  p%d ended %d: %v", phase, e.Token, e.Cause)
						if errors.Is(e.Cause, eldest.ErrDeposed) {
							mu.Lock()
							bad = append(bad, e.Cause.Error())
							mu.Unlock()
						}
					},
				},
			})
			require.NoError(t, err)
			for range 2 {
				all.Go(func() {
					for mine.Context().Err() == nil {
						ctx, cancel := context.WithTimeout(s.Ctx, rand.N(80*time.Millisecond)+time.Millisecond)
						if l, err := c.Campaign(ctx); err == nil {
							time.Sleep(rand.N(10 * time.Millisecond))
							_ = l.Resign(ctx)
						} else {
							_, _ = c.StepBack(ctx)
						}
						cancel()
					}
				})
			}
			time.Sleep(rand.N(150 * time.Millisecond))
			trace("abandon")
			session.Abandon()
			if session, err = lease.Resume(s.Ctx, lease.Config{Lease: s.Admin}, session.ID()); err != nil {
				require.NoError(t, err)
			}
			if rand.IntN(2) == 0 {
				all.Wait()
			} else {
				defer all.Wait()
			}
		}
		require.NoError(t, session.Close(s.Ctx))
		late.Wait()
		mu.Lock()
		if len(bad) > 0 {
			t.Log(strings.Join(lines, "\n"))
		}
		require.Empty(t, bad, "round %d", round)
		t.Logf("round %d: %d wins", round, n)
		mu.Unlock()
	}
}

// storming returns when a storm is to end.
func storming(t *testing.T) time.Time {
	seconds, err := strconv.Atoi(cmp.Or(os.Getenv("STORM"), "1"))
	require.NoError(t, err)
	return time.Now().Add(time.Duration(seconds) * time.Second)
}
