package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 14. The system is suspended for an hour: the boot-time clock has advanced; the monotonic
// clock, which timers use, has not. In other implementations the session counts its lease as valid
// for another TTL. In Eldest the deadline has passed at the first use, and no request is sent that
// relies on the lease. (The first use may be any other: TestFirstCallAfterASuspend of package
// election.)
//
// Fails when lease.Session.Holds relies on its timer.
func TestRegression14_SystemSuspend(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	clock := etcdtest.NewClock()
	var rec etcdtest.Recorder
	p := join(t, c.Client(t, rec.Attach), name, func(l *lease.Config, _ *election.Config) { l.Clock = clock })
	leader := p.Lead(t)
	require.True(t, leader.Holds(time.Second))
	guarded := leader.KV()
	rec.Reset()
	clock.Jump(time.Hour)
	require.False(t, leader.Holds(0), "the first use after the resume")
	require.Error(t, leader.Err(), "its context lives on")
	require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
	require.ErrorIs(t, etcdtest.Err(guarded.Put(etcdtest.Context(t), "k", "")), eldest.ErrNotLeading)
	require.Zero(t, rec.Count("Txn"), "it was left to etcd to refuse")
	require.Equal(t, lease.Lost, p.Session.Status().State)
}
