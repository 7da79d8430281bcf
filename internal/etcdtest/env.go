package etcdtest

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Env is the test environment of most tests: an election of their own on a cluster, a client that
// is recorded, and one that is not.
type Env struct {
	T        testing.TB
	Ctx      context.Context // lasts longer than any wait in the test
	Cluster  *Cluster
	Election string
	Rec      *Recorder
	Client   *clientv3.Client // recorded
	Admin    *clientv3.Client // not recorded
}

// NewEnv makes an Env on a cluster.
func NewEnv(t testing.TB, c *Cluster) *Env {
	t.Helper()
	rec := &Recorder{}
	return &Env{
		T: t, Ctx: ContextFor(t, 2*Patience), Cluster: c, Election: Election(t),
		Rec: rec, Client: c.Client(t, rec.Attach), Admin: c.Client(t),
	}
}

// Put writes a key by hand and returns the revision.
func (s *Env) Put(key, value string, opts ...clientv3.OpOption) int64 {
	s.T.Helper()
	resp, err := s.Admin.Put(s.Ctx, key, value, opts...)
	s.check(err)
	return resp.Header.Revision
}

// Remove deletes a key by hand, which must exist, and returns the revision.
func (s *Env) Remove(key string) int64 {
	s.T.Helper()
	resp, err := s.Admin.Delete(s.Ctx, key)
	s.check(err)
	if resp.Deleted != 1 {
		s.T.Fatalf("there is no key %q to delete", key)
	}
	return resp.Header.Revision
}

// Value reads a key; absent reports that it does not exist.
func (s *Env) Value(key string) (value string, absent bool) {
	s.T.Helper()
	resp, err := s.Admin.Get(s.Ctx, key)
	s.check(err)
	if len(resp.Kvs) == 0 {
		return "", true
	}
	return string(resp.Kvs[0].Value), false
}

// Queue returns the keys in the election's range, oldest first.
func (s *Env) Queue() []string {
	s.T.Helper()
	oldest := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	resp, err := s.Admin.Get(s.Ctx, s.Election+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(), oldest)
	s.check(err)
	queue := []string{}
	for _, kv := range resp.Kvs {
		queue = append(queue, string(kv.Key))
	}
	return queue
}

// Methods returns the methods that the recorded client has sent since the last call.
func (s *Env) Methods() []string {
	defer s.Rec.Reset()
	return s.Rec.Methods()
}

// Until waits for a condition on etcd or elsewhere.
func (s *Env) Until(what string, holds func() bool) {
	s.T.Helper()
	Eventually(s.T, holds, "%s", what)
}

func (s *Env) check(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}
