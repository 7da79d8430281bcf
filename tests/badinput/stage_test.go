package badinput

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// quiet is a TTL with which no lease is renewed while a row counts requests.
const quiet = time.Hour

// stage is an etcdtest.Env with replacements for names in the table.
type stage struct {
	*etcdtest.Env
	// hide are pairs of a text and its replacement; see alias.
	hide []string
}

// newStage opens an election on a cluster.
func newStage(t *testing.T, c *etcdtest.Cluster, election string) *stage {
	t.Helper()
	s := &stage{Env: etcdtest.NewEnv(t, c)}
	s.Ctx = etcdtest.ContextFor(t, 4*etcdtest.Patience) // shared by all of its rows
	s.Election = fmt.Sprintf("%s.%d", election, runs.Add(1))
	s.alias(s.Election, election)
	return s
}

// runs distinguishes the elections of repeated runs (go test -count).
var runs atomic.Int64

// alias makes the table show a name as another one.
func (s *stage) alias(name, as string) { s.hide = append([]string{name, as}, s.hide...) }

// hidden replaces all texts that have an alias; the latest first, which may contain earlier ones.
func (s *stage) hidden(text string) string { return strings.NewReplacer(s.hide...).Replace(text) }

// variant is a change that makes a candidate campaign in another election, which has the same name
// in the table.
func (s *stage) variant(kind string) func(*election.Config) {
	s.alias(s.Election+"-"+kind, "orders")
	return func(cfg *election.Config) { cfg.Election += "-" + kind }
}

// sent counts requests, except renewals and the ends of watches, which are sent in the background.
func (s *stage) sent() (n int) {
	for _, call := range s.Rec.Calls() {
		watch, ok := call.Request.(*etcdserverpb.WatchRequest)
		if call.Method != "LeaseKeepAlive" && (!ok || watch.GetCreateRequest() != nil) {
			n++
		}
	}
	return n
}

// watches counts the watches that were requested.
func (s *stage) watches() (n int) {
	for _, call := range s.Rec.Calls("Watch") {
		if watch, ok := call.Request.(*etcdserverpb.WatchRequest); ok && watch.GetCreateRequest() != nil {
			n++
		}
	}
	return n
}

// revision is etcd's current revision.
func (s *stage) revision() int64 {
	resp, err := s.Admin.Get(s.Ctx, "nothing")
	require.NoError(s.T, err)
	return resp.Header.Revision
}

func (s *stage) section(title, about string) section {
	return section{title: title, about: about, sent: s.sent, revision: s.revision, hide: s.hidden}
}

// session opens a session that sends nothing by itself, and is closed with the test.
func (s *stage) session() *lease.Session {
	s.T.Helper()
	session, err := lease.Open(s.Ctx, lease.Config{Lease: s.Client, Options: lease.Options{TTL: quiet}})
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
		defer cancel()
		_ = session.Close(ctx) // a row may have ended it
	})
	return session
}

// candidate makes a candidate that sends nothing by itself, and is closed with the test.
func (s *stage) candidate(session *lease.Session, change ...func(*election.Config)) *election.Candidate {
	s.T.Helper()
	cfg := s.config(session)
	for _, f := range change {
		f(&cfg)
	}
	return s.candidateOf(cfg)
}

func (s *stage) candidateOf(cfg election.Config) *election.Candidate {
	s.T.Helper()
	c, err := election.New(cfg)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
		defer cancel()
		_ = c.Close(ctx) // a row may have ended it
	})
	return c
}

func (s *stage) config(session *lease.Session) election.Config {
	return election.Config{
		Election: s.Election, Session: session, KV: s.Client, Watcher: s.Client,
		// A request that takes long is not repeated: it would be counted twice.
		Options: election.Options{WatchCheck: -1, Timeout: etcdtest.Patience},
	}
}

// leader campaigns and wins, and waits until the watch of its own key was requested, so that no
// request is sent later.
func (s *stage) leader(c *election.Candidate) *election.Leadership {
	s.T.Helper()
	watches := s.watches()
	l, err := c.Campaign(s.Ctx)
	require.NoError(s.T, err)
	s.watching(watches + 1)
	return l
}

// watching waits until n watches have been requested.
func (s *stage) watching(n int) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return s.watches() >= n }, etcdtest.Patience, time.Millisecond)
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

// none is a nil client; in an interface it is not a nil interface.
var none *clientv3.Client

// absent is a nil context.
var absent context.Context

// long returns a name that is one byte over a limit.
func long(limit int) string { return strings.Repeat("n", limit+1) }

// badNames are names that no election can have.
var badNames = []struct{ what, name string }{
	{"an empty name", ""},
	{"a nested name, `orders/eu`", "orders/eu"},
	{"a name that ends in a slash", "orders/"},
	{"a name of 1,025 bytes", long(1024)},
}
