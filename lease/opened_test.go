package lease_test

import (
	"context"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/lease"
)

// granting answers everything at once, for so long that nothing is renewed.
type granting struct {
	clientv3.Lease
	lease.Unconfirmed
}

func (granting) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: 7, TTL: 3600}, nil
}

func (granting) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return &clientv3.LeaseRevokeResponse{}, nil
}

// The session is whole when Opened is told of it: whatever the hook asks of it, which may
// be before Open has returned, it has the answer. The hook comes too early only if it
// overtakes Open, so there are many of them.
//
// Broken by newSession handing Opened over before the timer and the clean-up are there.
func TestOpenedIsGivenAWholeSession(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 4000 {
				cfg := lease.Config{Lease: granting{}}
				cfg.Hooks.Opened = func(e lease.OpenedEvent) {
					e.Session.Status()
					e.Session.Abandon()
				}
				s, err := lease.Open(t.Context(), cfg)
				if err == nil {
					err = s.Close(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
