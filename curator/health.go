package curator

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
)

// The names that the health service answers for. They are this node's own, never the
// leader's.
const (
	// healthAll: requests are served, here or by the leader.
	healthAll = ""
	// healthLeader: this node leads.
	healthLeader = "leader"
	// healthAlive: this node answers. Peers ask for it while calls are in flight.
	healthAlive = "alive"
)

// registerHealth registers the gRPC health service. It reads the status at each
// question, so that it needs no goroutine and is never behind; its streams end with ctx.
//
// gRPC's own implementation keeps a copy of the state, for somebody to keep up to date,
// and its streams end only with the caller, so that no server with a watching client
// could stop gracefully.
func registerHealth(ctx context.Context, r grpc.ServiceRegistrar, s statuses) {
	healthpb.RegisterHealthServer(r, &healthServer{life: life{ctx}, statuses: s})
}

type healthServer struct {
	healthpb.UnimplementedHealthServer
	life     life
	statuses statuses
}

// Check answers for one name; one that is not known is NotFound, as the protocol has it.
func (h *healthServer) Check(_ context.Context, q *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	is := h.health(q.GetService(), h.statuses.Status())
	if is == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Errorf(codes.NotFound, "no health is kept for %.64q", q.GetService())
	}
	return &healthpb.HealthCheckResponse{Status: is}, nil
}

// List answers for all names.
func (h *healthServer) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	s := h.statuses.Status()
	all := make(map[string]*healthpb.HealthCheckResponse)
	for _, name := range []string{healthAll, healthLeader, healthAlive} {
		all[name] = &healthpb.HealthCheckResponse{Status: h.health(name, s)}
	}
	return &healthpb.HealthListResponse{Statuses: all}, nil
}

// Watch answers for one name at once and after each change. A name that is not known
// is told to be unknown, and the stream stays open, as the protocol has it.
func (h *healthServer) Watch(q *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx, stop := h.life.bound(stream.Context())
	defer stop()
	watch := h.statuses.Watch()
	told := healthpb.HealthCheckResponse_ServingStatus(-1)
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return h.life.end(stream.Context())
		}
		is := h.health(q.GetService(), s)
		if is == told {
			continue
		}
		if err := stream.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
			return err
		}
		told = is
	}
}

// health says what a status means for a name. A leader that says no address cannot be
// forwarded to, so whoever follows it serves nothing.
func (h *healthServer) health(name string, s elector.Status) healthpb.HealthCheckResponse_ServingStatus {
	leads, serves := s.Role() == elector.Leading, false
	if leader, ok := s.Leader(); ok {
		serves = leader.Address != ""
	}
	var is bool
	switch name {
	case healthAll:
		is = (leads || serves) && !h.life.over()
	case healthLeader:
		is = leads && !h.life.over()
	case healthAlive:
		is = true // as long as it can be said: calls that are in flight may yet end well
	default:
		return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	}
	if is {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}
