package sandbox

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

// longTTL is for tests in which no lease is to expire, however busy the machine is.
const longTTL = 30 * time.Second

func TestMain(m *testing.M) {
	keeper.Serve(connect.Kept) // some participants have a keeper
	participant.Serve()
	etcdtest.Parallel(12)
	goleak.VerifyTestMain(m)
}

// stage is a sandbox, and what its log has.
type stage struct {
	*Sandbox
	feedtest.Feed
	t   *testing.T
	ctx context.Context
}

// open starts a sandbox with the given participants, whose processes run this binary. One member is
// enough where nothing happens to members.
func open(t *testing.T, members int, ttl time.Duration, start ...feed.Kind) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*etcdtest.Patience)
	t.Cleanup(cancel)
	cfg := Config{Members: members, TTL: ttl, Start: append([]feed.Kind{}, start...), Executable: os.Args[0]}
	sandbox, err := Open(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })
	s := &stage{sandbox, feedtest.Feed{T: t, Of: sandbox.Log()}, t, ctx}
	t.Cleanup(s.explain)
	return s
}

// openQueue is open with participants that are queued in the order in which they are given, p1 first.
func openQueue(t *testing.T, members int, ttl time.Duration, kinds ...feed.Kind) *stage {
	t.Helper()
	s := open(t, members, ttl)
	var names []string
	for i, kind := range kinds {
		s.do(feed.Action{Do: feed.Add, Kind: kind})
		names = append(names, participantName(i+1))
		s.queued(names...)
	}
	return s
}

// explain shows what was done and what went wrong, if the test has failed.
func (s *stage) explain() {
	if !s.t.Failed() {
		return
	}
	for _, e := range s.All() {
		switch e.Type {
		case feed.Acted:
			s.t.Logf("%10.1f %+v %s", e.AtMS, *e.Action, e.Error)
		case feed.Problem:
			s.t.Logf("%10.1f problem: %s", e.AtMS, e.Error)
		case feed.Report:
			s.t.Logf("%10.1f %s %+v", e.AtMS, e.Who, *e.Report)
		case feed.Participant:
			s.t.Logf("%10.1f %s %+v", e.AtMS, e.Who, *e.Participant)
		case feed.Members:
			s.t.Logf("%10.1f members: %v", e.AtMS, states(e))
		case feed.Sent, feed.Held, feed.Delivered, feed.Lost, feed.Queue, feed.Elections, feed.Observer:
		}
	}
}

// do does an action, which must succeed.
func (s *stage) do(a feed.Action) {
	s.t.Helper()
	require.NoError(s.t, s.Do(s.ctx, a), "%+v", a)
}

// order returns the participants in the queue, the oldest first.
func (s *stage) order() (names []string) {
	for _, p := range s.Places("") {
		names = append(names, p.Who)
	}
	return names
}

// queued waits until the queue has these participants, in this order.
func (s *stage) queued(want ...string) {
	s.t.Helper()
	etcdtest.Eventually(s.t, func() bool { return slices.Equal(s.order(), want) }, "the queue is %v, want %v", lazy(s.order), want)
}

// among waits until the queue has these participants, in any order.
func (s *stage) among(want ...string) {
	s.t.Helper()
	sorted := func() []string { return slices.Sorted(slices.Values(s.order())) }
	etcdtest.Eventually(s.t, func() bool { return slices.Equal(sorted(), want) }, "the queue has %v, want %v", lazy(sorted), want)
}

// place returns a participant's place in the queue.
func (s *stage) place(who string) feed.PlaceState {
	s.t.Helper()
	places := s.Places("")
	i := slices.IndexFunc(places, func(p feed.PlaceState) bool { return p.Who == who })
	require.GreaterOrEqual(s.t, i, 0, who)
	return places[i]
}

// lazy is a value that is read when it is printed.
type lazy func() []string

func (l lazy) String() string {
	text := ""
	for _, name := range l() {
		text += name + " "
	}
	return text
}
