package observe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
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
