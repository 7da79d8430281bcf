package clusterview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// page is a view whose log is read, as an open page does.
type page struct {
	*View
	feedtest.Feed
	t *testing.T
}

// flags are connection flags as after Resolve.
func flags(endpoints ...string) *connect.Flags {
	return &connect.Flags{Endpoints: endpoints, DialTimeout: etcdtest.Patience, CommandTimeout: 5 * time.Second, Explicit: true}
}

// open opens a page. It is closed with the test, before etcd is.
func open(t *testing.T, conn *connect.Flags, cfg Config) *page {
	t.Helper()
	client, err := conn.Dial(etcdtest.Context(t))
	require.NoError(t, err)
	cfg.Client, cfg.Conn = client, conn
	v, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, v.Close())
		require.NoError(t, client.Close())
	})
	return &page{v, feedtest.Feed{T: t, Of: v.Log()}, t}
}

// until waits until what was shown is as it should be.
func (p *page) until(what string, holds func() bool) {
	p.t.Helper()
	etcdtest.Eventually(p.t, holds, "%s", what)
}

// list returns the newest list of elections.
func (p *page) list() []feed.ElectionState {
	return p.Newest(func(e feed.Event) bool { return e.Type == feed.Elections }).Elections
}

// problems returns all problems.
func (p *page) problems() (texts []string) {
	for _, e := range p.All() {
		if e.Type == feed.Problem {
			texts = append(texts, e.Error)
		}
	}
	return texts
}

// queued waits until the candidates of an election are these, by who they are.
func (p *page) queued(election string, who ...string) {
	p.t.Helper()
	p.until("the queue of "+election+" is "+strings.Join(who, ", "), func() bool { return slices.Equal(who, p.who(election)) })
}

// who returns the candidates of an election.
func (p *page) who(election string) (who []string) {
	for _, place := range p.Places(election) {
		who = append(who, place.Who)
	}
	return who
}

// place returns a place of a queue.
func (p *page) place(election string, i int) feed.PlaceState {
	p.t.Helper()
	p.until("there is a candidate", func() bool { return len(p.Places(election)) > i })
	return p.Places(election)[i]
}

// does does an action, and returns its event.
func (p *page) does(a feed.Action) (act feed.Event, err error) {
	p.t.Helper()
	since := p.Seq()
	err = p.Do(etcdtest.Context(p.t), a)
	act = p.Await(since, "the action", feedtest.IsAction)
	require.Equal(p.t, a, *act.Action)
	require.Equal(p.t, err != nil, act.Error != "")
	return act, err
}

// reports waits for a problem with the texts.
func (p *page) reports(texts ...string) {
	p.t.Helper()
	p.until("a problem with "+strings.Join(texts, " and "), func() bool {
		return slices.ContainsFunc(p.problems(), func(problem string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(problem, text) })
		})
	})
}

// etcd is what tests do to etcd.
type etcd struct {
	*clientv3.Client
	t *testing.T
}

// registers puts the key of a candidate.
func (e etcd) registers(election, value string) (key string, lease clientv3.LeaseID) {
	e.t.Helper()
	ctx := etcdtest.Context(e.t)
	granted, err := e.Grant(ctx, 60)
	require.NoError(e.t, err)
	directory, name := split(election)
	key = directory + keys.Candidate(name, int64(granted.ID))
	e.puts(key, value, clientv3.WithLease(granted.ID))
	return key, granted.ID
}

func (e etcd) puts(key, value string, options ...clientv3.OpOption) {
	e.t.Helper()
	_, err := e.Put(etcdtest.Context(e.t), key, value, options...)
	require.NoError(e.t, err)
}

func (e etcd) deletes(key string) {
	e.t.Helper()
	_, err := e.Delete(etcdtest.Context(e.t), key)
	require.NoError(e.t, err)
}

// exists reports whether there is a key.
func (e etcd) exists(key string) bool {
	e.t.Helper()
	answer, err := e.Get(etcdtest.Context(e.t), key)
	require.NoError(e.t, err)
	return len(answer.Kvs) == 1
}

// shared returns the shared etcd with a directory of the test's own, and the flags for it.
func shared(t *testing.T) (e etcd, directory string, conn *connect.Flags) {
	t.Helper()
	c := etcdtest.Shared(t)
	directory = etcdtest.Election(t) + "/"
	conn = flags(c.Endpoints()...)
	conn.Namespace = directory
	return etcd{c.Client(t), t}, directory, conn
}
