package clusterview

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// page is what a page has received of a view.
type page struct {
	*View
	t *testing.T

	mu        sync.Mutex
	all       []feed.Event
	queues    map[string]*feed.QueueState
	list      []feed.ElectionState
	members   []feed.MemberState
	problems  []string
	acts      []feed.Event
	receiving sync.WaitGroup
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
	p := &page{View: v, t: t, queues: map[string]*feed.QueueState{}}
	ctx, leave := context.WithCancel(context.Background())
	p.receiving.Go(func() { p.receive(ctx) })
	t.Cleanup(func() {
		leave()
		p.receiving.Wait()
		require.NoError(t, v.Close())
		require.NoError(t, client.Close())
	})
	return p
}

func (p *page) receive(ctx context.Context) {
	for seq := int64(0); ; {
		events, err := p.Log().After(ctx, seq, 100)
		if err != nil {
			return
		}
		p.mu.Lock()
		for _, e := range events {
			seq = e.Seq
			p.all = append(p.all, e)
			switch e.Type {
			case feed.Queue:
				p.queues[e.Queue.Election] = e.Queue
			case feed.Elections:
				p.list = e.Elections
			case feed.Members:
				p.members = e.Members
			case feed.Problem:
				p.problems = append(p.problems, e.Error)
			case feed.Acted:
				p.acts = append(p.acts, e)
			}
		}
		p.mu.Unlock()
	}
}

// until waits until what was received is as it should be.
func (p *page) until(what string, holds func() bool) {
	p.t.Helper()
	etcdtest.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return holds()
	}, "%s", what)
}

// queued waits until the candidates of an election are these, by who they are.
func (p *page) queued(election string, who ...string) {
	p.t.Helper()
	p.until("the queue of "+election+" is "+strings.Join(who, ", "), func() bool { return slices.Equal(who, p.who(election)) })
}

// who returns the candidates of an election. The caller holds mu.
func (p *page) who(election string) (who []string) {
	if p.queues[election] == nil {
		return nil
	}
	for _, place := range p.queues[election].Places {
		who = append(who, place.Who)
	}
	return who
}

// place returns a place of a queue.
func (p *page) place(election string, i int) feed.PlaceState {
	p.t.Helper()
	var place feed.PlaceState
	p.until("there is a candidate", func() bool {
		if q := p.queues[election]; q != nil && len(q.Places) > i {
			place = q.Places[i]
			return true
		}
		return false
	})
	return place
}

// does does an action, and returns the event of it that was received.
func (p *page) does(a feed.Action) (act feed.Event, err error) {
	p.t.Helper()
	p.mu.Lock()
	before := len(p.acts)
	p.mu.Unlock()
	err = p.Do(etcdtest.Context(p.t), a)
	p.until("the action was received", func() bool {
		if len(p.acts) == before {
			return false
		}
		act = p.acts[before]
		return true
	})
	require.Equal(p.t, a, *act.Action)
	require.Equal(p.t, err != nil, act.Error != "")
	return act, err
}

// received returns copies of what tests look at.
func (p *page) received() (list []feed.ElectionState, members []feed.MemberState, problems []string, all []feed.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.members, slices.Clone(p.problems), slices.Clone(p.all)
}

// reports waits for a problem with the texts.
func (p *page) reports(texts ...string) {
	p.t.Helper()
	p.until("a problem with "+strings.Join(texts, " and "), func() bool {
		return slices.ContainsFunc(p.problems, func(problem string) bool {
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
