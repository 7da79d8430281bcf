package order_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/order"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

// name returns the election of a test.
func name(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", " ") }

// candidate makes a candidate with a session of its own.
func candidate(ctx context.Context, t *testing.T, client *clientv3.Client, q order.Queue, change ...func(*election.Config)) *election.Candidate {
	t.Helper()
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: 5 * time.Minute}})
	require.NoError(t, err)
	cfg := election.Config{Election: name(t), Session: session, KV: client, Watcher: client, Options: election.Options{Ordering: q, Timeout: 20 * time.Second}}
	for _, f := range change {
		f(&cfg)
	}
	c, err := election.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = c.Close(ctx)
		_ = session.Close(ctx)
	})
	return c
}

// lines puts n candidates in the queue and returns the channel on which they win.
func lines(ctx context.Context, t *testing.T, client *clientv3.Client, q order.Queue, n int, change ...func(*election.Config)) (tokens []eldest.Token, won chan *election.Leadership) {
	t.Helper()
	won = make(chan *election.Leadership, n)
	for range n {
		c := candidate(ctx, t, client, q, change...)
		place, err := c.Register(ctx)
		require.NoError(t, err)
		require.Empty(t, place.Predecessor, "who is before it is not asked yet")
		tokens = append(tokens, place.Token)
		go func() {
			if l, err := c.Await(ctx); err == nil {
				won <- l
			}
		}()
	}
	return tokens, won
}

// The leader stays when others enter; after that the order decides, and fences grow where tokens do
// not.
func TestOrders(t *testing.T) {
	for what, before := range map[string]func(a, b eldest.Candidate) bool{
		"youngest first": nil,
		"etcd's own":     func(a, b eldest.Candidate) bool { return a.Token < b.Token },
	} {
		t.Run(what, func(t *testing.T) {
			ctx := etcdtest.ContextFor(t, 2*time.Minute)
			client := etcdtest.Shared(t).Client(t)
			q := order.Queue{Before: before}
			leader, err := candidate(ctx, t, client, q).Campaign(ctx)
			require.NoError(t, err)
			tokens, won := lines(ctx, t, client, q, 4)
			require.NoError(t, leader.Err(), "younger ones came, and it stays")
			if before == nil {
				slices.Reverse(tokens)
			}
			fence := eldest.Token(0)
			for _, token := range tokens {
				at, err := order.Fence(ctx, client, leader)
				require.NoError(t, err)
				require.Greater(t, at, fence)
				fence = at
				_, err = leader.KV().Put(ctx, "elsewhere", "by the leader")
				require.NoError(t, err, "the guard agrees")
				require.NoError(t, leader.Resign(ctx))
				former := leader
				leader = etcdtest.Take(t, won, "a win")
				require.Equal(t, token, leader.Token())
				_, err = order.Fence(ctx, client, former)
				require.ErrorIs(t, err, eldest.ErrNotLeading)
				guard := former.Guard()
				guard.Alive = nil
				_, err = guard.KV(client).Put(ctx, "elsewhere", "late")
				require.ErrorIs(t, err, eldest.ErrDeposed)
			}
			require.NoError(t, leader.Resign(ctx))
			_, err = order.LeaderOf(ctx, client, name(t))
			require.ErrorIs(t, err, eldest.ErrNoLeader)
		})
	}
}

// The cost of the order: the candidates that entered one ahead of the other all wait for the
// leader, and read the queue when it leaves. After that each waits for the next one, and one
// departure causes one read.
func TestLooks(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	rec := &etcdtest.Recorder{}
	client := etcdtest.Shared(t).Client(t, rec.Attach)
	looks := func() (n int) {
		for _, call := range rec.Calls("Txn") {
			if txn := call.Request.(*etcdserverpb.TxnRequest); len(txn.Compare) == 0 {
				n++
			}
		}
		return n
	}
	var waits atomic.Int64
	quiet := func(cfg *election.Config) {
		cfg.WatchCheck = -1
		cfg.Hooks.Waiting = func(election.WaitingEvent) { waits.Add(1) }
	}
	leader, err := candidate(ctx, t, client, order.Queue{}, quiet).Campaign(ctx)
	require.NoError(t, err)
	rec.Reset()
	const n = 6
	var won [n]chan *election.Leadership
	for i := range won {
		_, won[i] = lines(ctx, t, client, order.Queue{}, 1, quiet)
		// It has its predecessor before the next candidate enters.
		require.Eventually(t, func() bool { return waits.Load() == int64(i+1) }, time.Minute, time.Millisecond)
	}
	rec.Reset()
	require.NoError(t, leader.Resign(ctx))
	leader = etcdtest.Take(t, won[n-1], "a win")
	// All others have read, and wait for the next one: a read that is sent, but not answered, may
	// still see the state after the next departure.
	require.Eventually(t, func() bool { return waits.Load() == n+n-1 }, time.Minute, time.Millisecond)
	require.Equal(t, n, looks())
	for i := range 3 {
		require.NoError(t, leader.Resign(ctx))
		leader = etcdtest.Take(t, won[n-2-i], "a win")
	}
	require.Equal(t, n+3, looks())
}

// Try wins alone, and leaves if another candidate leads.
func TestTry(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	client := etcdtest.Shared(t).Client(t)
	a, b := candidate(ctx, t, client, order.Queue{}), candidate(ctx, t, client, order.Queue{})
	l, err := a.Try(ctx)
	require.NoError(t, err)
	_, err = order.Fence(ctx, client, l)
	require.NoError(t, err, "it has claimed")
	_, err = b.Try(ctx)
	require.ErrorIs(t, err, eldest.ErrNotElected)
	require.NoError(t, l.Resign(ctx))
	_, err = b.Try(ctx)
	require.NoError(t, err)
}

// The reply to a claim is lost: when the call is repeated, the queue finds its own claim.
func TestLostClaim(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	host := etcdtest.Shared(t).Host(t)
	client := host.Client(t)
	c := candidate(ctx, t, client, order.Queue{})
	_, err := c.Register(ctx)
	require.NoError(t, err)
	own := fmt.Sprintf(" %s", c.Key()) // the end of the claim's value
	lost := host.SwallowNextReply(etcdtest.Containing(own))
	won := make(chan *election.Leadership, 1)
	go func() {
		if l, err := c.Await(ctx); err == nil {
			won <- l
		}
	}()
	require.NoError(t, lost.Wait(ctx))
	host.Reset()
	l := etcdtest.Take(t, won, "a win")
	at, err := order.Fence(ctx, client, l)
	require.NoError(t, err)
	require.Greater(t, at, l.Token())
}

// The position that Enter returns is never a proof, and a claim fails if the queue has changed
// since it was read.
func TestNothingIsWonWithoutAClaim(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	client := etcdtest.Shared(t).Client(t)
	q := order.Queue{}
	entry := func() txn.Entry {
		granted, err := client.Grant(ctx, 60)
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = client.Revoke(context.Background(), granted.ID) })
		return txn.Entry{Election: t.Name(), Lease: int64(granted.ID)}
	}
	a, b := entry(), entry()
	pa, err := q.EnterAlone(ctx, client, a)
	require.NoError(t, err)
	require.False(t, pa.First())
	pb, err := q.Enter(ctx, client, b)
	require.NoError(t, err)
	require.False(t, pb.First())

	_, err = client.Delete(ctx, b.Key())
	require.NoError(t, err)
	claimed := func(between func()) error {
		kv := &entering{KV: client, before: between}
		place, err := q.Ahead(ctx, kv, a, pa, 0)
		require.Equal(t, 2, kv.txns, "a is the first, and claims")
		require.False(t, place.First())
		require.NotErrorIs(t, err, eldest.ErrInvalid, "it passes, and is asked again")
		return err
	}
	// Between a read of a's and its claim, another candidate claims; b enters; or a's key is
	// deleted.
	require.Error(t, claimed(func() {
		_, err := client.Put(ctx, order.Key(t.Name()), fmt.Sprintf("%d %s", pb.Token, b.Key()))
		require.NoError(t, err)
	}))
	require.Error(t, claimed(func() {
		pb, err = q.Enter(ctx, client, b)
		require.NoError(t, err)
	}))
	_, err = order.LeaderOf(ctx, client, t.Name())
	require.ErrorIs(t, err, eldest.ErrNoLeader)
	next, err := q.Ahead(ctx, client, a, pa, 0)
	require.NoError(t, err)
	require.Len(t, next.Ahead, 1)
	require.Equal(t, b.Key(), next.Ahead[0].Key)
	_, err = client.Delete(ctx, b.Key())
	require.NoError(t, err)
	require.Error(t, claimed(func() {
		_, err := client.Delete(ctx, a.Key())
		require.NoError(t, err)
	}))
	_, err = order.LeaderOf(ctx, client, t.Name())
	require.ErrorIs(t, err, eldest.ErrNoLeader)
	// Without a key the error is ErrDeposed.
	_, err = q.Ahead(ctx, client, a, pa, 0)
	require.ErrorIs(t, err, eldest.ErrDeposed)
}

// entering calls before between the first transaction and the second.
type entering struct {
	clientv3.KV
	txns   int
	before func()
}

func (k *entering) Txn(ctx context.Context) clientv3.Txn {
	if k.txns++; k.txns == 2 {
		k.before()
	}
	return k.KV.Txn(ctx)
}

// crowd is the number of candidates in TestHistory.
const crowd = 12

// Candidates enter, give up, lead, leave, and are deleted by hand. Every candidate that stays
// leads. Afterwards etcd's history is read revision by revision: no claim replaced that of a key
// that still existed, so no two candidates led (G1), and each candidate that claimed was the first
// in the order.
func TestHistory(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	cluster := etcdtest.Start(t, etcdtest.Config{})
	client := cluster.Client(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const rounds = 6
	var all sync.WaitGroup
	for i := range crowd {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		c := candidate(ctx, t, client, order.Queue{})
		all.Go(func() {
			defer func() { _ = c.Close(ctx) }()
			for range rounds {
				during, cancel := ctx, context.CancelFunc(func() {})
				if dice.IntN(3) == 0 { // gives up, perhaps in the middle of a claim
					during, cancel = context.WithTimeout(ctx, time.Duration(dice.IntN(40))*time.Millisecond)
				}
				l, err := c.Campaign(during)
				cancel()
				switch {
				case err != nil && during == ctx:
					t.Error(err)
					return
				case err != nil:
				case dice.IntN(4) == 0:
					_, _ = client.Delete(ctx, l.Key())
					<-l.Done()
				default:
					_ = l.Resign(ctx)
				}
			}
		})
	}
	all.Wait()
	replay(ctx, t, client)
}

// replay reads the history of an election from etcd.
func replay(ctx context.Context, t *testing.T, client *clientv3.Client) {
	t.Helper()
	name, end := t.Name(), t.Name()+".end"
	_, err := client.Put(ctx, end, "")
	require.NoError(t, err)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	h := history{t: t, alive: map[string]int64{}}
	for resp := range client.Watch(watching, name, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		require.NoError(t, resp.Err())
		for _, event := range resp.Events {
			switch key := string(event.Kv.Key); {
			case key == end:
				require.Greater(t, h.claims, crowd, "the crowd has hardly led")
				require.Empty(t, h.alive)
				return
			case key == order.Key(name) && event.Type == clientv3.EventTypePut:
				h.claimed(string(event.Kv.Value))
			case key == order.Key(name): // it was deleted with its lease
			case event.Type == clientv3.EventTypeDelete:
				delete(h.alive, key)
			default:
				h.alive[key] = event.Kv.CreateRevision
			}
		}
	}
	require.FailNow(t, "the history has no end")
}

// history is an election at one revision: the candidates, their create revisions, and the claim.
type history struct {
	t      *testing.T
	alive  map[string]int64
	claim  string
	claims int
}

// claimed compares a new claim with the state at its revision.
func (h *history) claimed(claim string) {
	h.t.Helper()
	read := func(claim string) (key string, token int64) {
		_, err := fmt.Sscanf(claim, "%d %s", &token, &key)
		require.NoError(h.t, err)
		return key, token
	}
	key, token := read(claim)
	require.Equal(h.t, h.alive[key], token, "whoever claims is alive")
	for other, created := range h.alive {
		require.LessOrEqual(h.t, created, token, "%s is before %s", other, key)
	}
	if h.claim != "" {
		before, was := read(h.claim)
		require.NotEqual(h.t, h.alive[before], was, "claimed from a leader that lives")
	}
	h.claim = claim
	h.claims++
}

// A leader's key is deleted by hand: the leader is deposed, and the waiter is notified and leads,
// although the claim still has the old leader.
func TestDeposed(t *testing.T) {
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	client := etcdtest.Shared(t).Client(t)
	leader, err := candidate(ctx, t, client, order.Queue{}).Campaign(ctx)
	require.NoError(t, err)
	_, won := lines(ctx, t, client, order.Queue{}, 1)
	_, err = client.Delete(ctx, leader.Key())
	require.NoError(t, err)
	_ = etcdtest.Take(t, won, "a win")
	<-leader.Done()
	require.ErrorIs(t, leader.Err(), eldest.ErrDeposed)
}
