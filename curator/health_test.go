package curator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	serving    = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
)

// healthy asks one node for all its names, one by one and as a list.
func healthy(t testing.TB, p *speaker) (all, leader, alive bool) {
	t.Helper()
	list, err := p.health().List(etcdtest.Context(t), &healthpb.HealthListRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetStatuses(), 4)
	is := func(name string) bool {
		r, err := p.health().Check(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: name})
		require.NoError(t, err)
		require.Equal(t, r.GetStatus(), list.GetStatuses()[name].GetStatus(), "%q", name)
		return r.GetStatus() == serving
	}
	return is(healthAll), is(healthLeader), is(healthAlive)
}

func requireHealth(t testing.TB, p *speaker, all, leader, alive bool) {
	t.Helper()
	gotAll, gotLeader, gotAlive := healthy(t, p)
	require.Equal(t, []bool{all, leader, alive}, []bool{gotAll, gotLeader, gotAlive}, "serving, leader, alive at %v", p.Status())
}

// Row 53: what a node's health says in each role.
func TestRequirement53HealthOfRoles(t *testing.T) {
	election := electionOf(t)
	a, b := newSpeaker(t, election, "a"), newSpeaker(t, election, "b")
	requireHealth(t, a, false, false, true)
	stopA := a.stand(t)
	a.becomes(t, elector.Leading)
	requireHealth(t, a, true, true, true)
	b.stand(t)
	b.becomes(t, elector.Following)
	requireHealth(t, b, true, false, true)
	stopA()
	b.becomes(t, elector.Leading)
	requireHealth(t, a, false, false, true)
	requireHealth(t, b, true, true, true)
	_, err := b.health().Check(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: "who?"})
	require.Equal(t, codes.NotFound, status.Code(err))
	b.stopping()
	requireHealth(t, b, false, false, true)
}

// Who follows a leader without an address cannot serve anything, and who cannot tell
// who leads neither.
func TestHealthBehindStrangers(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n")
	p.stranger(t, []byte{0x0a, 2, 'n', '0', 0x10, 60})
	p.stand(t)
	p.becomes(t, elector.Following)
	requireHealth(t, p, false, false, true)
	p.stranger(t, []byte("strange"))
	p.becomes(t, elector.Neither)
	requireHealth(t, p, false, false, true)
}

// watched reads a health stream.
type watched struct {
	t      testing.TB
	stream grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
}

func watchHealth(t testing.TB, p *speaker, name string) watched {
	t.Helper()
	stream, err := p.health().Watch(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: name})
	require.NoError(t, err)
	return watched{t, stream}
}

func (w watched) next() healthpb.HealthCheckResponse_ServingStatus {
	w.t.Helper()
	r, err := w.stream.Recv()
	require.NoError(w.t, err)
	return r.GetStatus()
}

// Row 53: a watcher is told at once and at each change of what it asked for, and of
// nothing else; its stream ends with the node.
func TestHealthWatch(t *testing.T) {
	election := electionOf(t)
	a, b := newSpeaker(t, election, "a"), newSpeaker(t, election, "b")
	all, leader, alive, who := watchHealth(t, b, healthAll), watchHealth(t, b, healthLeader), watchHealth(t, b, healthAlive), watchHealth(t, b, "who?")
	require.Equal(t, notServing, all.next())
	require.Equal(t, notServing, leader.next())
	require.Equal(t, serving, alive.next())
	require.Equal(t, healthpb.HealthCheckResponse_SERVICE_UNKNOWN, who.next())
	stopA := a.stand(t)
	a.becomes(t, elector.Leading)
	b.stand(t)
	b.becomes(t, elector.Following)
	require.Equal(t, serving, all.next())
	stopA()
	require.Equal(t, serving, leader.next(), "of neither's coming and going a watcher of the leader hears nothing")

	b.stopping()
	stopped := make(chan struct{})
	go func() { b.server.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(etcdtest.Patience):
		require.Fail(t, "the server waits for its streams")
	}
	require.Equal(t, notServing, leader.next(), "the last word of a node that stops")
	for _, w := range []watched{leader, alive, who} {
		_, err := w.stream.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	}
}
