package curator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/retry"
)

// heartbeat detects a failed leader whose connections do not break: its machine lost power, or a
// network drops its packets. Without it the calls in flight would hang for as long as gRPC's own
// pings take, which is at least ten seconds.
//
// While calls are in flight it sends requests to the leader's health service, which every node
// answers in every state. Any answer counts, also a refusal. It has its own connection, because
// calls on the same connection could delay the request.
type heartbeat struct {
	every   time.Duration // between two requests
	timeout time.Duration // of each request
	misses  int           // in a row, after which the connections are closed
}

// A leader that does not respond is detected after 3 to 6 seconds. A leader that is too busy to
// answer within two seconds, two times in a row, loses its connections and the calls on them.
var defaultHeartbeat = heartbeat{every: time.Second, timeout: 2 * time.Second, misses: 2}

// watch sends the requests. It returns when the control connection was closed, here or elsewhere.
func (h heartbeat) watch(p *peer, control *link) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-control.calls.Context().Done():
			return
		case <-tick.C:
		}
		if !p.busy() || h.answered(control) {
			missed = 0
			continue
		}
		if missed++; missed >= h.misses {
			p.abort(fmt.Errorf("the leader did not answer %d heartbeats within %v each", missed, h.timeout))
		}
	}
}

// answered sends one request. If the leader allows one stream on a connection, listen uses it and
// no request can be sent: this proves nothing, and only gRPC's pings remain.
func (h heartbeat) answered(l *link) bool {
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	var there grpcpeer.Peer
	_, err := healthpb.NewHealthClient(l).Check(ctx, &healthpb.HealthCheckRequest{Service: healthAlive}, grpc.Peer(&there))
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	return there.Addr == nil && l.GetState() == connectivity.Ready
}

// listen watches whether the leader serves and reports this to serves, until the control connection
// is closed or the leader does not say. A leader that stops announces it first, and then new calls
// wait for the next leader. A leader whose state is unknown is tried.
func (h heartbeat) listen(control *link, serves func(bool)) {
	life := control.calls.Context()
	for h.follow(life, control, serves) && retry.Sleep(life, h.every) == nil {
	}
	serves(true)
}

// follow reads one stream to its end. It returns false if the leader does not have this service.
func (h heartbeat) follow(life context.Context, control *link, serves func(bool)) bool {
	stream, err := healthpb.NewHealthClient(control).Watch(life, &healthpb.HealthCheckRequest{Service: healthServing})
	for err == nil {
		var is *healthpb.HealthCheckResponse
		if is, err = stream.Recv(); err == nil {
			serves(is.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING)
		}
	}
	switch status.Code(err) {
	case codes.Unimplemented, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated:
		return false
	default:
		return true
	}
}
