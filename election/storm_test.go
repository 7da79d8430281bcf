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
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// storm is a round in which candidates do everything concurrently, with clients that lose, delay
// and refuse requests. No other client removes a key, so no candidacy may end with ErrDeposed, no
// token may win twice on one session, and no key may remain.
type storm struct {
	*env
	late sync.WaitGroup // transactions on their way

	mu    sync.Mutex
	calm  bool
	wins  map[*lease.Session]map[eldest.Token]bool
	bad   []string
	trace []string
}

// storms runs rounds for a second or, with STORM=seconds, longer.
func storms(t *testing.T, round func(s *storm)) {
	seconds, err := strconv.Atoi(cmp.Or(os.Getenv("STORM"), "1"))
	require.NoError(t, err)
	e := newEnv(t)
	for end, n := time.Now().Add(time.Duration(seconds)*time.Second), 0; time.Now().Before(end); n++ {
		s := &storm{env: e, wins: map[*lease.Session]map[eldest.Token]bool{}}
		s.Election = fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), n)
		round(s)
		s.late.Wait()
		s.queued(0)
		s.mu.Lock()
		if len(s.bad) > 0 {
			t.Log(strings.Join(s.trace, "\n"))
		}
		require.Empty(t, s.bad, "round %d", n)
		s.mu.Unlock()
	}
}

func (s *storm) log(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
}

func (s *storm) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calm
}

// lossy is a client whose transactions are lost, late, refused, or lose their reply.
func (s *storm) lossy() clientv3.KV {
	commit := func(ctx context.Context, txn *etcdtest.Txn, how string) (*clientv3.TxnResponse, error) {
		resp, err := txn.Commit(ctx)
		s.log("%s %s %v: %v", txn.Then[0].KeyBytes(), how, txn.If, err)
		return resp, err
	}
	return etcdtest.WithTxns(s.Admin, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		arrives := context.WithoutCancel(txn.Context)
		writes := !txn.Then[0].IsGet()
		switch n := rand.IntN(100); {
		case s.quiet():
		case n < 8:
			return nil, context.DeadlineExceeded
		case n < 16:
			if _, err := commit(arrives, txn, "unanswered"); err != nil {
				return nil, err
			}
			return nil, context.DeadlineExceeded
		case n < 28 && writes:
			s.late.Go(func() {
				time.Sleep(rand.N(60 * time.Millisecond))
				_, _ = commit(arrives, txn, "late")
			})
			if rand.IntN(2) == 0 {
				return nil, context.DeadlineExceeded
			}
			<-txn.Context.Done()
			return nil, txn.Context.Err()
		case n < 33 && txn.Then[0].IsDelete():
			return nil, rpctypes.ErrPermissionDenied
		case n < 60:
			time.Sleep(rand.N(5 * time.Millisecond))
		}
		return commit(txn.Context, txn, "now")
	})
}

// enter makes a candidate on a session.
func (s *storm) enter(name string, session *lease.Session, kv clientv3.KV) *election.Candidate {
	return s.candidate(name, on(session), func(cfg *election.Config) {
		cfg.KV, cfg.Watcher, cfg.Timeout = kv, s.Admin, 40*time.Millisecond
		cfg.Backoff = func(int) time.Duration { return rand.N(5*time.Millisecond) + time.Millisecond }
		cfg.Hooks.Registered = func(e election.RegisteredEvent) {
			s.log("%s %s registered %d adopted %v", name, e.Key, e.Token, e.Adopted)
		}
		cfg.Hooks.Won = func(e election.WonEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.wins[session] == nil {
				s.wins[session] = map[eldest.Token]bool{}
			}
			if s.wins[session][e.Token] {
				s.bad = append(s.bad, fmt.Sprintf("%s: token %d twice", name, e.Token))
			}
			s.wins[session][e.Token] = true
		}
		cfg.Hooks.Ended = func(e election.EndedEvent) {
			s.log("%s %s ended %d: %v", name, e.Key, e.Token, e.Cause)
			if errors.Is(e.Cause, eldest.ErrDeposed) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.bad = append(s.bad, fmt.Sprintf("%s: token %d deposed: %v", name, e.Token, e.Cause))
			}
		}
	})
}

// repeat calls do, under contexts that soon end, while goes returns true.
func (s *storm) repeat(all *sync.WaitGroup, goes func() bool, do func(ctx context.Context)) {
	all.Go(func() {
		for goes() {
			ctx, cancel := context.WithTimeout(s.Ctx, rand.N(80*time.Millisecond)+time.Millisecond)
			do(ctx)
			cancel()
		}
	})
}

// TestStorm has four candidates on two sessions, with two clients.
func TestStorm(t *testing.T) {
	storms(t, func(s *storm) {
		sessions := []*lease.Session{s.session(s.Admin), s.session(s.Admin)}
		kvs := []clientv3.KV{s.lossy(), s.lossy()}
		var all sync.WaitGroup
		var candidates []*election.Candidate
		stop := time.Now().Add(1500 * time.Millisecond)
		goes := func() bool { return time.Now().Before(stop) }
		for i := range 4 {
			c := s.enter(fmt.Sprint(i), sessions[i/3], kvs[i%2])
			candidates = append(candidates, c)
			s.repeat(&all, goes, func(ctx context.Context) { comeAndGo(ctx, s, c) })
			s.repeat(&all, goes, func(ctx context.Context) {
				time.Sleep(rand.N(40 * time.Millisecond))
				switch rand.IntN(3) {
				case 0:
					_ = c.Withdraw(ctx)
				case 1:
					_, _ = c.Requeue(ctx)
				case 2:
					_ = c.Drain(c.Status().Token, nil)
				}
			})
		}
		all.Wait()
		s.mu.Lock()
		s.calm = true
		s.mu.Unlock()
		for _, c := range candidates {
			require.NoError(t, c.Close(s.Ctx))
		}
		s.late.Wait()
		s.queued(0)
		for _, session := range sessions { // without the candidates' mutex, which late background requests take
			require.NoError(t, session.Err())
			require.NoError(t, session.Close(s.Ctx))
		}
	})
}

// comeAndGo has a candidate win in a random way, and end its tenure in a random way.
func comeAndGo(ctx context.Context, s *storm, c *election.Candidate) {
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
	if err != nil {
		return
	}
	switch rand.IntN(4) {
	case 0:
		_ = l.Resign(ctx)
	case 1:
		l.Drain(nil)
	case 2:
		_ = l.Lead(ctx, func(context.Context) error { time.Sleep(rand.N(3 * time.Millisecond)); return nil })
	case 3:
		_ = l.Proclaim(ctx, []byte("p"))
		_ = l.Resign(ctx)
		go func() { _ = l.Resign(s.Ctx) }()
	}
}

// TestStormOfResumes has one session, abandoned and resumed repeatedly with a new candidate.
func TestStormOfResumes(t *testing.T) {
	storms(t, func(s *storm) {
		kv, session := s.lossy(), s.session(s.Admin)
		var all sync.WaitGroup
		defer all.Wait()
		for life := range 6 {
			mine, c := session, s.enter(fmt.Sprint(life), session, kv)
			for range 2 {
				s.repeat(&all, func() bool { return mine.Context().Err() == nil }, func(ctx context.Context) {
					if l, err := c.Campaign(ctx); err == nil {
						time.Sleep(rand.N(10 * time.Millisecond))
						_ = l.Resign(ctx)
					} else {
						_, _ = c.Requeue(ctx)
					}
				})
			}
			time.Sleep(rand.N(150 * time.Millisecond))
			s.log("abandoned")
			session.Abandon()
			session = s.resume(session)
			if rand.IntN(2) == 0 {
				all.Wait()
			}
		}
		require.NoError(t, session.Close(s.Ctx))
	})
}
