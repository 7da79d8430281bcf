package lease_test

import (
	"context"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/lease"
)

// granting answers at once with a TTL so long that nothing is renewed.
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

// The session is complete when the Opened hook is called: all its methods work, even before Open
// has returned. The hook is called too early only if it overtakes Open, so the test opens many
// sessions.
//
// Fails if newSession calls Opened before the timer and the clean-up exist.
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
