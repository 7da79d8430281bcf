package security

import (
	"context"
	"crypto/x509"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// failure is a failed attempt as a hook received it.
type failure struct {
	op      string
	attempt int
	err     error
	pause   time.Duration
}

// Clients that do not accept etcd's certificate wait as long as their contexts allow, which may be
// for ever. Each attempt is reported with the reason of its failure, and an elector logs it.
func TestRegression60WrongCertificateIsReported(t *testing.T) {
	t.Parallel()
	f := newFortress(t, simple, 0)
	cause := x509.UnknownAuthorityError{}.Error()
	mistrusting := func(t *testing.T) *clientv3.Client {
		return f.clientOf("", etcdtest.NewAuthority(t).Client(f.ca.Issue("root")))
	}
	// reported waits for an attempt that was reported with the cause, and then cancels try.
	reported := func(t *testing.T, op string, try func(ctx context.Context, told func(failure)) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		failures, returned := make(chan failure, 100), make(chan error, 1)
		go func() { returned <- try(ctx, func(f failure) { failures <- f }) }()
		for i := 1; ; i++ {
			one := etcdtest.Take(t, failures, "a failed attempt")
			require.Equal(t, op, one.op)
			require.Positive(t, one.attempt)
			require.Error(t, one.err)
			require.Positive(t, one.pause)
			if strings.Contains(one.err.Error(), cause) {
				break
			}
			require.Less(t, i, 5, "the cause is not reported: %v", one.err)
		}
		cancel()
		require.ErrorIs(t, etcdtest.Take(t, returned, "the return"), context.Canceled)
	}
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		reported(t, "open session", func(ctx context.Context, told func(failure)) error {
			_, err := lease.Open(ctx, lease.Config{
				Lease: mistrusting(t),
				Options: lease.Options{Hooks: lease.Hooks{
					Retrying: func(e lease.RetryingEvent) { told(failure{e.Op, e.Attempt, e.Err, e.Pause}) },
				}},
			})
			return err
		})
	})
	t.Run("campaign", func(t *testing.T) {
		t.Parallel()
		session, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: f.root, Options: lease.Options{TTL: time.Minute}})
		require.NoError(t, err)
		defer func() { require.NoError(t, session.Close(etcdtest.Context(t))) }()
		reported(t, "register", func(ctx context.Context, told func(failure)) error {
			cli := mistrusting(t)
			c, err := election.New(election.Config{
				Election: "svc", Session: session, KV: cli, Watcher: cli,
				Options: election.Options{
					Timeout: 500 * time.Millisecond,
					Hooks: election.Hooks{Retrying: func(e election.RetryingEvent) {
						if e.Op == "register" { // not the later clean-up of the key
							told(failure{e.Op, e.Attempt, e.Err, e.Pause})
						}
					}},
				},
			})
			require.NoError(t, err)
			_, err = c.Campaign(ctx)
			return err
		})
	})
	t.Run("observe", func(t *testing.T) {
		t.Parallel()
		reported(t, "watch", func(ctx context.Context, told func(failure)) error {
			cli := mistrusting(t)
			o, err := observe.New(observe.Config{
				Election: "svc", KV: cli, Watcher: cli,
				Options: observe.Options{
					Timeout: 500 * time.Millisecond,
					Hooks:   observe.Hooks{Retrying: func(e observe.RetryingEvent) { told(failure{e.Op, e.Attempt, e.Err, e.Pause}) }},
				},
			})
			require.NoError(t, err)
			defer o.Close()
			<-ctx.Done()
			return ctx.Err()
		})
	})
	t.Run("elector", func(t *testing.T) {
		t.Parallel()
		var log etcdtest.Paper
		e, err := elector.New(elector.Config{
			Election: "svc", NodeID: "n", Source: elector.Always(elector.Client(mistrusting(t))),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		returned := make(chan error, 1)
		go func() {
			returned <- e.Run(ctx, func(context.Context, *elector.Leadership) error { t.Error("it leads"); return nil })
		}()
		etcdtest.Eventually(t, func() bool {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "level=WARN") && strings.Contains(line, `op="open session"`) &&
					strings.Contains(line, "node=n") && strings.Contains(line, cause) {
					return true
				}
			}
			return false
		}, "the log does not say what is wrong")
		cancel()
		require.ErrorIs(t, etcdtest.Take(t, returned, "the return"), context.Canceled)
	})
}
