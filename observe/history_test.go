package observe

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/keys"
)

// G6 even if etcd itself goes back, because it was restored from a backup: a token lower than one
// that was reported is never reported.
func TestHistoryThatGoesBackIsUnknown(t *testing.T) {
	o := &Observer{cfg: Config{Election: "e"}}
	led := func(token eldest.Token) eldest.State {
		o.publish(eldest.State{Kind: eldest.Led, Leader: eldest.Leader{Token: token}, Revision: int64(token)})
		return o.State()
	}
	require.Equal(t, eldest.Unknown, o.State().Kind)
	require.ErrorIs(t, o.State().Reason, eldest.ErrUnavailable)
	require.Equal(t, eldest.Token(7), led(7).Leader.Token)
	back := led(5)
	require.Equal(t, eldest.Unknown, back.Kind, "a token went back")
	require.ErrorContains(t, back.Reason, "5 after 7")
	o.publish(eldest.State{Kind: eldest.Nobody, Revision: 6})
	require.Equal(t, eldest.Nobody, o.State().Kind)
	require.Equal(t, eldest.Unknown, led(6).Kind)
	require.Equal(t, eldest.Token(8), led(8).Leader.Token)
}

// G6 for two readers of one observer: a state that is read after a position is not older than it.
func TestStatesAndPositionsAreOne(t *testing.T) {
	o := &Observer{cfg: Config{Election: "e"}}
	const last = 20_000
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for token := eldest.Token(1); token <= last; token++ {
			o.publish(eldest.State{Kind: eldest.Led, Leader: eldest.Leader{Token: token}, Revision: int64(token)})
		}
	})
	for newest := eldest.Token(0); newest < last; {
		p, err := o.Positions().Next(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.Leader.Token, newest, "the position is older than the state before it")
		newest = o.State().Leader.Token
		require.GreaterOrEqual(t, newest, p.Leader.Token, "the state is older than the position before it")
	}
}

// The same of Changes: revisions never go back. What was reported last is compared with what is true
// when etcd has caught up.
func TestChangesOfAHistoryThatGoesBack(t *testing.T) {
	var updates []Update
	c := &changes{cfg: Config{Election: "e"}, known: map[string]eldest.Candidate{}, unknown: true, yield: func(u Update, _ error) bool {
		updates = append(updates, u)
		return true
	}}
	c.view = view.View{Election: "e"}
	read := func(revision int64, leases ...int64) Update {
		var kvs []*mvccpb.KeyValue
		for _, lease := range leases {
			kvs = append(kvs, &mvccpb.KeyValue{Key: []byte(keys.Candidate("e", lease)), CreateRevision: lease, ModRevision: lease})
		}
		c.view.Reset(revision, kvs)
		c.unknown = true
		c.report(nil)
		return updates[len(updates)-1]
	}
	require.Len(t, read(7, 3, 7).Registered, 2)
	back := read(5, 3)
	require.Equal(t, eldest.Unknown, back.State.Kind, "a revision went back")
	require.ErrorContains(t, back.State.Reason, "restored from a backup")
	c.view.Change(6, nil)
	c.report(nil)
	require.Len(t, updates, 2, "the same reason is not repeated")
	c.view.Change(8, nil)
	c.report(nil)
	require.Len(t, updates, 3)
	require.EqualValues(t, 7, updates[2].Left[0].Lease)
	require.Equal(t, 1, updates[2].Queue)
	require.True(t, updates[2].Read)
}

// G6 for Changes: when the revisions have caught up, a leader that is older than one that was reported
// is still not reported.
func TestChangesReportNoOlderLeader(t *testing.T) {
	var updates []Update
	c := &changes{cfg: Config{Election: "e"}, known: map[string]eldest.Candidate{}, unknown: true, yield: func(u Update, _ error) bool {
		updates = append(updates, u)
		return true
	}}
	c.view = view.View{Election: "e"}
	put := func(lease int64) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(keys.Candidate("e", lease)), CreateRevision: lease, ModRevision: lease}
	}
	read := func(revision int64, kvs ...*mvccpb.KeyValue) Update {
		c.view.Reset(revision, kvs)
		c.unknown = true
		c.report(nil)
		return updates[len(updates)-1]
	}
	require.Equal(t, eldest.Token(7), read(7, put(7)).State.Leader.Token)
	require.Equal(t, eldest.Unknown, read(9, put(3), put(8)).State.Kind, "restored, and many other keys were written since")
	c.view.Change(10, []*clientv3.Event{{Type: mvccpb.PUT, Kv: put(10)}})
	c.report([]*clientv3.Event{{Type: mvccpb.PUT, Kv: put(10)}})
	require.Len(t, updates, 2, "the same reason is not repeated")
	gone := []*clientv3.Event{{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: put(3).Key, ModRevision: 11}}}
	c.view.Change(11, gone)
	c.report(gone)
	last := updates[len(updates)-1]
	require.Equal(t, eldest.Token(8), last.State.Leader.Token)
	require.Equal(t, 2, last.Queue)
	require.Len(t, last.Registered, 2)
	require.Len(t, last.Left, 1)
	require.True(t, last.Read)
}

// A state that changes nothing wakes no subscriber.
func TestPublishSkipsWhatIsNoNews(t *testing.T) {
	o := &Observer{cfg: Config{Election: "e"}}
	sub := o.Subscribe()
	state := eldest.State{Kind: eldest.Led, Leader: eldest.Leader{Token: 7, ModRevision: 8}, Revision: 8}
	o.publish(state)
	require.NoError(t, etcdtest.Err(sub.Next(t.Context())))
	state.Revision = 9
	o.publish(state)
	require.Equal(t, int64(8), o.State().Revision)
	state.Leader.ModRevision = 10
	o.publish(state)
	require.Equal(t, int64(10), o.State().Leader.ModRevision)
}
