package eldest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// Participants, as in package electiontest.
type (
	participant = electiontest.Participant
	outcome     = electiontest.Outcome
	change      = electiontest.Change
)

// ended waits until a tenure has ended, for the given reason.
func ended(t testing.TB, l *election.Leadership, reason error) {
	t.Helper()
	etcdtest.Take(t, l.Done(), "the end of a tenure")
	require.ErrorIs(t, l.Err(), reason)
	require.False(t, l.Holds(0))
}

// watchElection returns an observer with timeouts for a test on a small cluster.
func watchElection(t testing.TB, cli *clientv3.Client, name string) *observe.Observer {
	t.Helper()
	o, err := observe.New(observe.Config{
		Election: name, KV: cli, Watcher: cli,
		Options: observe.Options{Timeout: 500 * time.Millisecond, WatchCheck: 500 * time.Millisecond},
	})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// resigned resigns a tenure that was won.
func resigned(t testing.TB, l *election.Leadership, err error) error {
	t.Helper()
	if err != nil {
		return err
	}
	return l.Resign(etcdtest.Context(t))
}
