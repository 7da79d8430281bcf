package routing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDeposed = errors.New("deposed, by the test")

// peer records why it was closed.
type peer struct {
	leader elector.Leader
	closed error
}

func (p *peer) Leader() elector.Leader { return p.leader }
func (p *peer) Close(reason error)     { p.closed = reason }

func led(by string, token eldest.Token) (l elector.Leader) {
	l.NodeID, l.Address, l.Token = by, by+":1", token
	return l
}

func newRouter() *Router[string, *peer] {
	return New[string](func(l elector.Leader) (*peer, error) {
		if l.Address == "nowhere:1" {
			return nil, errors.New("it has no address")
		}
		return &peer{leader: l}, nil
	})
}

func tenure(ctx context.Context, token eldest.Token, expired func() error) *Tenure[string] {
	return &Tenure[string]{Calls: NewCalls(ctx, expired), Token: token}
}

// The decision of each route for each kind of call.
func TestDecide(t *testing.T) {
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	late := func() error { return errDeposed }
	follows := &peer{}
	type route = Route[string, *peer]
	for name, tc := range map[string]struct {
		route *route
		// of a caller's call, and of one forwarded to an older, to this, to a newer tenure
		want [4]Decision
	}{
		"leading":           {&route{Tenure: tenure(t.Context(), 7, Never), known: 7}, [4]Decision{Serve, Refuse, Serve, Refuse}},
		"ended":             {&route{Tenure: tenure(dead, 7, Never), known: 7}, [4]Decision{Wait, Refuse, Refuse, Refuse}},
		"past its deadline": {&route{Tenure: tenure(t.Context(), 7, late), known: 7}, [4]Decision{Wait, Refuse, Refuse, Refuse}},
		"following":         {&route{Peer: follows, known: 7}, [4]Decision{Forward, Refuse, Refuse, WaitBriefly}},
		"the leader leaves": {&route{Peer: follows, Leaving: true, known: 7}, [4]Decision{Wait, Refuse, Refuse, WaitBriefly}},
		"unknown":           {&route{Reason: errDeposed, known: 7}, [4]Decision{Wait, Refuse, Refuse, Wait}},
		"over":              {&route{Reason: errDeposed, known: 7, Over: true}, [4]Decision{Refuse, Refuse, Refuse, Refuse}},
	} {
		for i, token := range []eldest.Token{0, 6, 7, 8} {
			require.Equal(t, tc.want[i], tc.route.Decide(token), "%s, token %d", name, token)
			require.Error(t, tc.route.WrongNode("other", "n", token), name)
		}
		require.Error(t, tc.route.Why(), name)
	}
}

// While a tenure is set up, no status changes the route. After it, every status does: its token may
// also be lower, from another etcd or a restored one. Nothing changes the route after Stop.
func TestRoutes(t *testing.T) {
	r := newRouter()
	require.ErrorIs(t, r.Now().Reason, eldest.ErrClosed)
	r.Follow(led("a", 7))
	first := r.Now().Peer
	r.Unknown(errDeposed)
	require.False(t, r.Now().Follows())
	r.Follow(led("a", 7))
	require.Equal(t, first, r.Now().Peer, "the same leader, seen again")
	r.Serves(first, false)
	require.True(t, r.Now().Leaving)
	r.Follow(led("a", 7))
	require.True(t, r.Now().Leaving, "the same leader is no news")
	r.Follow(led("nowhere", 7))
	require.ErrorIs(t, r.Now().Reason, eldest.ErrNoLeader)
	require.NoError(t, first.closed)

	own := tenure(t.Context(), 8, Never)
	require.NoError(t, r.Lead(own))
	require.ErrorIs(t, r.Lead(tenure(t.Context(), 9, Never)), eldest.ErrInvalid)
	require.Error(t, first.closed, "a leader needs no leader")
	r.Follow(led("b", 9))
	r.Unknown(errDeposed)
	require.Equal(t, own, r.Now().Tenure, "a tenure ends by its own word")
	r.Leave(own, errDeposed)
	require.ErrorIs(t, r.Now().Reason, errDeposed)
	for _, token := range []eldest.Token{9, 1000, 5} {
		before := r.Now().Peer
		r.Follow(led("b", token))
		require.Equal(t, token, r.Now().Peer.Leader().Token)
		require.Equal(t, Refuse, r.Now().Decide(token), "as new as what is known")
		if before != nil {
			require.Error(t, before.closed)
		}
	}
	last := r.Now().Peer
	require.Nil(t, r.Drain(errDeposed))
	require.NoError(t, r.Lead(own))
	require.Nil(t, r.Now().Tenure, "a node that is draining leads no more")
	require.Nil(t, r.Stop(eldest.ErrClosed))
	r.Follow(led("c", 2000))
	r.Unknown(errDeposed)
	require.NoError(t, r.Lead(own))
	require.ErrorIs(t, r.Now().Reason, eldest.ErrClosed)
	r.Disconnect(errDeposed)
	require.ErrorIs(t, last.closed, errDeposed)
}

// The connections to a leader at its earlier addresses are closed for good when another tenure is
// known, when the router stops, or when the leader has had many more addresses.
func TestEarlierAddressesOfALeader(t *testing.T) {
	at := func(token eldest.Token, address int) elector.Leader {
		l := led("a", token)
		l.Address = fmt.Sprint("a:", address)
		return l
	}
	for name, end := range map[string]func(r *Router[string, *peer]){
		"another tenure": func(r *Router[string, *peer]) { r.Follow(at(8, 1)) },
		"own tenure":     func(r *Router[string, *peer]) { require.NoError(t, r.Lead(tenure(t.Context(), 8, Never))) },
		"stop":           func(r *Router[string, *peer]) { r.Stop(errDeposed); r.Disconnect(errDeposed) },
	} {
		r := newRouter()
		var peers []*peer
		for address := range 2 * maxMoved {
			r.Follow(at(7, address))
			r.Unknown(errDeposed)
			r.Follow(at(7, address))
			peers = append(peers, r.Now().Peer)
		}
		last := len(peers) - 1
		require.NoError(t, peers[last].closed)
		for i, p := range peers[:last] {
			require.Equal(t, i >= last-maxMoved, errors.Is(p.closed, ErrMoved), "%s: address %d: %v", name, i, p.closed)
		}
		end(r)
		for i, p := range peers {
			require.Error(t, p.closed)
			require.NotErrorIs(t, p.closed, ErrMoved, "%s: address %d", name, i)
		}
	}
}

// When another tenure is known, the connections to the last leader are closed, also if nothing can be
// forwarded to the new one, and if the new tenure is this node's own and is not set up yet.
//
// Fails if only a leader with an address ends the connections to the one before.
func TestConnectionsEndWithTheTenure(t *testing.T) {
	for name, another := range map[string]func(r *Router[string, *peer]){
		"without an address": func(r *Router[string, *peer]) { r.Follow(led("nowhere", 8)) },
		"own":                func(r *Router[string, *peer]) { r.Beginning(errDeposed) },
	} {
		r := newRouter()
		r.Follow(led("b", 7))
		moved := r.Now().Peer
		r.Follow(led("a", 7))
		last := r.Now().Peer
		r.Serves(last, false)
		r.Unknown(errDeposed)
		require.NoError(t, last.closed)
		another(r)
		require.ErrorIs(t, last.closed, errAnother, name)
		require.ErrorIs(t, moved.closed, errAnother, name)
		require.False(t, r.Now().Follows())
		r.Follow(led("a", 9))
		require.False(t, r.Now().Leaving)
	}
}

// No wait outlasts the context of its caller.
func TestWaitsEndWithTheCaller(t *testing.T) {
	r := newRouter()
	gone, leave := context.WithCancelCause(t.Context())
	leave(errDeposed)
	_, _, err := r.Next(gone, 0, time.Now().Add(time.Hour))
	require.ErrorIs(t, err, errDeposed)
	require.True(t, r.Pause(gone, r.Now(), time.Hour, time.Now().Add(time.Hour)))
	_, _, err = r.Next(t.Context(), 0, time.Now())
	require.ErrorIs(t, err, ErrWaitLimit)
	require.False(t, r.Pause(t.Context(), r.Now(), time.Hour, time.Now()))
}

// Drain waits for awaited calls, Finish for all. No call begins after the end.
func TestCalls(t *testing.T) {
	c := NewCalls(t.Context(), Never)
	require.NoError(t, c.Begin(true))
	require.NoError(t, c.Begin(false))
	settled := make(chan struct{})
	go func() { defer close(settled); c.Drain(t.Context(), time.Hour) }()
	c.Close(errDeposed)
	require.ErrorIs(t, c.Begin(true), errDeposed)
	require.NoError(t, c.Cause())
	c.End(true)
	<-settled
	require.Equal(t, 1, c.Running())
	finished := make(chan struct{})
	go func() { defer close(finished); c.Finish(errDeposed) }()
	<-c.Context().Done()
	select {
	case <-finished:
		require.Fail(t, "a call still runs")
	case <-time.After(20 * time.Millisecond):
	}
	c.End(false)
	<-finished

	c = NewCalls(t.Context(), Never)
	require.NoError(t, c.Begin(true))
	c.Drain(t.Context(), time.Millisecond)
	go c.Cancel(errDeposed)
	c.Drain(t.Context(), time.Hour) // ends with the calls' context
	require.ErrorIs(t, c.Over(), errDeposed)
	c.End(true)
}
