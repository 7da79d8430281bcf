package wiretap_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Messages from and to a partitioned lane are lost, and those of other lanes are not.
func TestCut(t *testing.T) {
	s := newStage(t)
	anna, bert := s.client("anna"), s.client("bert")
	watched := anna.Watch(s.ctx, "k", clientv3.WithCreatedNotify())
	<-watched

	s.tap.Cut("anna")
	lost := func(kind wiretap.Kind) wiretap.Message {
		return s.eventually(func(m wiretap.Message) bool { return m.Lost && m.Kind == kind })
	}
	short, cancel := context.WithCancel(s.ctx)
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := anna.Put(short, "k", "lost")
		given <- err
	}()
	require.Equal(t, "anna", lost(wiretap.Request).Lane)
	cancel() // it waits for an answer that does not come
	require.Error(t, <-given)
	_, err := bert.Put(s.ctx, "k", "there")
	require.NoError(t, err)
	require.Equal(t, "anna", lost(wiretap.Answer).Lane, "the event")
	got, err := bert.Get(s.ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "there", string(got.Kvs[0].Value))
	require.EqualValues(t, 1, got.Kvs[0].Version, "what was lost arrived")

	// The watch lost an event: it ends, and the client makes a new one from there on.
	s.tap.Mend("anna")
	require.Equal(t, "there", string((<-watched).Events[0].Kv.Value))
	_, err = anna.Put(s.ctx, "k", "again")
	require.NoError(t, err)
	end := s.eventually(func(m wiretap.Message) bool { return m.Kind == wiretap.End && m.Stream })
	require.Equal(t, codes.Unavailable, end.Status.Code())
	s.tap.Mend("nobody")
}
