package election_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// F14: etcd runs out of space. Its quota looks at a write while it is applied: the
// one that oversteps the quota is carried out and then refused with the same error
// as all that come after it, so who is refused for want of space knows nothing.
//
// Both tests are broken by counting ErrNoSpace as definite in internal/rpcerr.

// newFullStage is a stage on an etcd of its own with little space.
func newFullStage(t *testing.T) *stage {
	s := newStage(t)
	c := etcdtest.Start(t, etcdtest.Config{Quota: 4 << 20})
	s.Client, s.Admin = c.Client(t), c.Client(t)
	return s
}

// there reports whether a key is.
func (s *stage) there(key string) bool {
	resp, err := s.Admin.Get(s.Ctx, key, clientv3.WithCountOnly())
	require.NoError(s.T, err)
	return resp.Count > 0
}

// noSpace is the errors that were met for want of space, by key.
type noSpace struct {
	mu  sync.Mutex
	met map[string]error
}

func (n *noSpace) add(key string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.met == nil {
		n.met = map[string]error{}
	}
	n.met[key] = err
}

// G4: a guarded write that reports a definite failure has not been carried out.
func TestGuardedWriteRefusedForSpaceIsUnknown(t *testing.T) {
	t.Parallel()
	s := newFullStage(t)
	kv := s.lead(s.candidate("v")).KV()
	value := strings.Repeat("x", 20<<10)
	var full noSpace
	var all sync.WaitGroup
	for i := range 64 { // several are at the quota at once
		all.Go(func() {
			for j := 0; ; j++ {
				key := fmt.Sprintf("%02d-%d", i, j)
				if _, err := kv.Put(s.Ctx, key, value); err != nil {
					full.add(key, err)
					return
				}
			}
		})
	}
	all.Wait()
	require.NotEmpty(t, full.met)
	applied := 0
	for key, err := range full.met {
		require.True(t, rpcerr.Is(err, rpctypes.ErrNoSpace), "%v", err)
		// Of all, for the error does not tell which of them it was.
		require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
		if s.there(key) {
			applied++
		}
	}
	// Nearly all, as a rule; none, if etcd noticed between two writes.
	t.Logf("%d of %d that were refused had been carried out", applied, len(full.met))
}

// G8: a registration that is refused for want of space leaves no key, whatever etcd
// did with it, though the session lives on: deletions need no space.
func TestRegistrationRefusedForSpaceLeavesNoGhost(t *testing.T) {
	t.Parallel()
	s := newFullStage(t)
	session := s.session(s.Client)
	value := []byte(strings.Repeat("x", 20<<10))
	var full noSpace
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for j := 0; ; j++ { // in elections of their own: one queue would grow long
				c, err := election.New(election.Config{
					Election: fmt.Sprintf("%s %02d-%d", s.Election, i, j), Session: session, KV: s.Client, Watcher: s.Client, Value: value,
				})
				if err == nil {
					_, err = c.Register(s.Ctx)
				}
				if err != nil {
					full.add(c.Key(), err)
					return
				}
			}
		})
	}
	all.Wait()
	for key, err := range full.met {
		require.True(t, rpcerr.Is(err, rpctypes.ErrNoSpace), "%v", err)
		require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
		s.Until("nothing is left of it", func() bool { return !s.there(key) })
	}
	require.NoError(t, session.Err(), "not with its lease")
}
