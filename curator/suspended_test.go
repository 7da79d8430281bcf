package curator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// While the tenure of a service is suspended no call is served: those that come wait. Then they are
// answered in the same tenure, by whichever node they came to.
//
// Fails when a suspended leader serves, and when a follower waits for another token.
func TestSuspendedServiceGoesOn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	beating := func(cfg *Config) {
		cfg.Elector.Source = elector.Always(elector.Client(cluster.Client(t)))
		cfg.Elector.Session.Heartbeat = lease.Heartbeat{Timeout: time.Second}
	}
	election := electionOf(t)
	leader := run(t, election, "leader", beating)
	_, token, _ := leader.becomes(elector.Leading).Own()
	follower := run(t, election, "follower", beating)
	follower.becomes(elector.Following)
	want := fmt.Sprintf("leader %d", token)
	for range 2 {
		require.NoError(t, cluster.Member(0).Stop())
		require.ErrorIs(t, leader.becomes(elector.Neither).Reason(), eldest.ErrSuspended)
		said := make(chan string, 2)
		for _, m := range []*member{leader, follower} {
			go func() {
				out, err := m.unary(etcdtest.Context(t))
				said <- fmt.Sprint(out, err)
			}()
		}
		time.Sleep(1500 * time.Millisecond)
		require.Empty(t, said, "nobody leads")
		require.NoError(t, cluster.Member(0).Cont())
		for range 2 {
			require.Equal(t, want+"<nil>", etcdtest.Take(t, said, "an answer"))
		}
		_, again, _ := leader.becomes(elector.Leading).Own()
		require.Equal(t, token, again)
	}
}
