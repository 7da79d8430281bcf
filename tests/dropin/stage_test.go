package dropin

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	// patience is how long an expected event may take on a busy machine.
	patience = time.Minute
	// quiet is a TTL with which no lease expires during a test.
	quiet = 60
	// while is how long a test waits for an event that must not happen.
	while = 500 * time.Millisecond
	// settled is how long a second campaign of a session gets to wait as well.
	settled = 2 * time.Second
	// shortly is how long a call gets whose reply is lost: less than a single attempt of our
	// package may take.
	shortly = time.Second
)

// stage is the test environment of a row: one package, an etcd and a name of its own. Its checks
// end the row; an error of the environment itself ends the test.
type stage struct {
	*testing.T
	face
	cluster *etcdtest.Cluster
	cli     *clientv3.Client
	name    string
	ctx     context.Context
	// soon limits events that must happen without any wait: it is enough for a busy machine, and
	// shorter than any TTL. For a package that is expected to fail it is shorter.
	soon time.Duration
	// patience is how long an expected event may take.
	patience time.Duration
}

var stages atomic.Int64

func newStage(t *testing.T, f face, fails bool) *stage {
	c := etcdtest.Shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	soon, patience := 10*time.Second, patience
	if fails {
		soon, patience = 2*time.Second, 8*time.Second
	}
	return &stage{T: t, face: f, soon: soon, patience: patience, cluster: c, cli: c.Client(t), ctx: ctx, name: fmt.Sprintf("dropin-%d", stages.Add(1))}
}

// check ends the row unless ok.
func (s *stage) check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure(fmt.Sprintf(format, args...)))
	}
}

// valid ends the test unless the test environment works.
func (s *stage) valid(err error) {
	s.Helper()
	require.NoError(s.T, err, "INVALID")
}

// own gives the row a cluster of its own, for faults that would disturb other rows.
func (s *stage) own() {
	s.cluster = etcdtest.Start(s.T, etcdtest.Config{})
	s.cli = s.cluster.Client(s.T)
}

// session opens a session that is closed with the test.
func (s *stage) session(o options) session { return s.sessionOn(s.cli, o) }

func (s *stage) sessionOn(cli *clientv3.Client, o options) session {
	if o.ttl == nil {
		ttl := quiet
		o.ttl = &ttl
	}
	made, err := s.newSession(cli, o)
	s.valid(err)
	s.Cleanup(func() { closed(made) })
	return made
}

// closed closes a session in the background of a test that has ended: etcd's package may take a TTL
// for it if the network is partitioned.
func closed(made session) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = made.Close() // it may have ended
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// election makes an election on a session of its own.
func (s *stage) election() (session, election) {
	made := s.session(options{})
	return made, s.newElection(made, s.name)
}

// within returns a context that ends after d.
func (s *stage) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	s.Cleanup(cancel)
	return ctx
}

// lead makes a candidate win in an election without an older candidate.
func (s *stage) lead(e election, value string) {
	s.valid(e.Campaign(s.within(patience), value))
}

// after runs f in the background.
func after(f func() error) <-chan error {
	result := etcdtest.Go(func() error { return f() })
	return result
}

// queue starts a campaign and returns when its key is in the queue.
func (s *stage) queue(ctx context.Context, made session, e election, value string) <-chan error {
	result := after(func() error { return e.Campaign(ctx, value) })
	s.inLine(made)
	return result
}

// inLine waits until a session's key exists.
func (s *stage) inLine(made session) {
	s.eventually(func() bool { return s.has(s.keyOf(made)) }, "a key in the line")
}

// waits waits until a candidate waits for an older key: what its client has asked before has been
// answered.
func (s *stage) waits(rec *etcdtest.Recorder, older string) {
	s.eventually(func() bool { return slices.Contains(rec.Placed(), older) }, "a candidate waits")
}

func (s *stage) keyOf(made session) string { return fmt.Sprintf("%s/%x", s.name, made.Lease()) }

func (s *stage) has(key string) bool {
	resp, err := s.cli.Get(s.within(patience), key, clientv3.WithCountOnly())
	s.valid(err)
	return resp.Count > 0
}

// line reads the keys under the name in their order.
func (s *stage) line() []string {
	resp, err := s.cli.Get(s.within(patience), s.name+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	s.valid(err)
	found := []string{}
	for _, kv := range resp.Kvs {
		found = append(found, string(kv.Key))
	}
	return found
}

// eventually waits for a condition of the test environment.
func (s *stage) eventually(condition func() bool, what string) {
	require.True(s.T, reached(condition, patience), "INVALID: not in time: "+what)
}

// reached waits for a condition.
func reached(condition func() bool, within time.Duration) bool {
	over := time.NewTimer(within)
	defer over.Stop()
	rhythm := time.NewTicker(5 * time.Millisecond)
	defer rhythm.Stop()
	for !condition() {
		select {
		case <-over.C:
			return false
		case <-rhythm.C:
		}
	}
	return true
}

// comes returns the next value of a channel, if it comes in time.
func comes[T any](from <-chan T, within time.Duration) (v T, ok bool) {
	select {
	case v = <-from:
		return v, true
	case <-time.After(within):
		return v, false
	}
}

// ended reports whether a channel is closed in time.
func ended(ch <-chan struct{}, within time.Duration) bool {
	_, ok := comes(ch, within)
	return ok
}

// isDone reports whether a channel is closed now.
func isDone(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// delete deletes a key by hand.
func (s *stage) delete(key string) {
	resp, err := s.cli.Delete(s.within(patience), key)
	s.valid(err)
	require.EqualValues(s.T, 1, resp.Deleted, "INVALID: there was nothing to delete")
}

// bystander campaigns with a session of its own and returns the result.
func (s *stage) bystander(ctx context.Context) <-chan error {
	_, e := s.election()
	return after(func() error { return e.Campaign(ctx, "bystander") })
}

// carry commits a transaction, under any context.
type carry func(ctx context.Context) (*clientv3.TxnResponse, error)

// meddling determines the result of a transaction: n is its number, from 1, and commit commits it.
type meddling func(ctx context.Context, n int64, commit carry) (*clientv3.TxnResponse, error)

// meddled returns a client of its own whose transactions are intercepted.
func (s *stage) meddled(how meddling) *clientv3.Client {
	var n atomic.Int64
	cli := s.cluster.Client(s.T)
	cli.KV = etcdtest.WithTxns(cli.KV, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		return how(t.Context, n.Add(1), t.Commit)
	})
	return cli
}

// is compares errors as programs do that do not use errors.Is.
func is(err, wanted error) bool { return err == wanted } //nolint:errorlint // that is the point
