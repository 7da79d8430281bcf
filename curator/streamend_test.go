package curator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// feeding is a script whose streams send what a key receives, from a watch that would not end by
// itself. It reports how each stream ended.
func feeding(key string, ended chan<- error) func(*elector.Leadership) *script {
	return func(l *elector.Leadership) *script {
		return &script{stream: func(stream grpc.ServerStream) (err error) {
			defer func() { ended <- err }()
			watch := l.Watcher().Watch(context.WithoutCancel(stream.Context()), key)
			if err := replies(stream, "begun"); err != nil {
				return err
			}
			for resp := range watch {
				if err := resp.Err(); err != nil {
					return err
				}
				for _, event := range resp.Events {
					if err := replies(stream, string(event.Kv.Value)); err != nil {
						return err
					}
				}
			}
			return errors.New("the watch ended without a reason")
		}}
	}
}

// Streams that a leader feeds from its guarded watcher end when it is deposed, also if events still
// arrive at it: here its requests are lost, and etcd's are not. No caller receives what was written
// in a later tenure, and the handlers return.
//
// Fails if the watches go on after the tenure.
func TestStreamsOfADeposedLeaderEnd(t *testing.T) {
	t.Parallel()
	for name, depose := range map[string]func(host *etcdtest.Host, a *member){
		"partitioned": func(host *etcdtest.Host, _ *member) { host.Drop(etcdtest.Inbound) },
		"deleted":     func(_ *etcdtest.Host, a *member) { a.depose() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			election := etcdtest.Election(t)
			key := "data of " + election
			ended := make(chan error, 2)
			host := etcdtest.Shared(t).Host(t)
			a := run(t, election, "a", patient, func(cfg *Config) {
				cfg.Elector.Session.TTL = 6 * time.Second // the shortest TTL that a slow machine does not affect
				cfg.Elector.Source = elector.Always(elector.Client(host.Client(t)))
				cfg.Services = serving(feeding(key, ended))
			})
			defer host.Mend()
			_, token, _ := a.becomes(elector.Leading).Own()
			b := run(t, election, "b", patient)
			b.becomes(elector.Following)
			streams := []*flow{a.open(serverMethod), b.open(serverMethod)}
			for _, stream := range streams {
				require.NoError(t, stream.SendMsg(&message{}))
				require.NoError(t, stream.CloseSend())
				stream.expect("begun")
			}
			write := func(value string) {
				t.Helper()
				_, err := b.etcd.Put(etcdtest.Context(t), key, value)
				require.NoError(t, err)
			}
			write("first")
			for _, stream := range streams {
				stream.expect("first")
			}

			depose(host, a)
			received := make([]<-chan error, len(streams))
			for i, stream := range streams {
				received[i] = asking(func() error {
					for {
						if value, err := stream.receive(); err != nil {
							return err
						} else if value != "meanwhile" {
							return fmt.Errorf("received %q, of a later tenure", value)
						}
					}
				})
			}
			for b.Status().Role() != elector.Leading {
				write("meanwhile")
				time.Sleep(20 * time.Millisecond)
			}
			a.is(func(s elector.Status) bool { return s.Role() != elector.Leading })
			write("later")
			for _, answer := range received {
				err := etcdtest.Take(t, answer, "the end of a stream")
				requireCode(t, codes.Unavailable, err)
				lost, ok := LostLeadership(err, election)
				require.True(t, ok, "%v", err)
				require.EqualValues(t, token, lost.GetToken())
				err = etcdtest.Take(t, ended, "the end of a handler")
				if _, sending := LostLeadership(err, election); !sending { // it was not sending at the end, but at its watch
					require.ErrorIs(t, err, eldest.ErrNotLeading)
				}
			}
		})
	}
}
