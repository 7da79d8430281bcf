package curator

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/internal/routing"
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
	// healthServing: a tenure of this node is served. Peers listen to it: a leader that stops
	// says so before it refuses the first call.
	healthServing = "serving"
)

// registerHealth registers the gRPC health service. It reads the status at each
// question, so that it needs no goroutine and is never behind; its streams end with ctx.
//
// gRPC's own implementation keeps a copy of the state, for somebody to keep up to date,
// and its streams end only with the caller, so that no server with a watching client
// could stop gracefully.
func registerHealth(ctx context.Context, r grpc.ServiceRegistrar, s statuses, routes *routing.Board[*route]) {
	healthpb.RegisterHealthServer(r, &healthServer{life: life{ctx}, statuses: s, routes: routes})
}

type healthServer struct {
	healthpb.UnimplementedHealthServer
	life     life
	statuses statuses
	routes   *routing.Board[*route]
}

// Check answers for one name; one that is not known is NotFound, as the protocol has it.
func (h *healthServer) Check(_ context.Context, q *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	is := h.health(q.GetService())
	if is == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Errorf(codes.NotFound, "no health is kept for %.64q", q.GetService())
	}
	return &healthpb.HealthCheckResponse{Status: is}, nil
}

// List answers for all names.
func (h *healthServer) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	all := make(map[string]*healthpb.HealthCheckResponse)
	for _, name := range []string{healthAll, healthLeader, healthAlive, healthServing} {
		all[name] = &healthpb.HealthCheckResponse{Status: h.health(name)}
	}
	return &healthpb.HealthListResponse{Statuses: all}, nil
}

// Watch answers for one name at once and after each change. A name that is not known
// is told to be unknown, and the stream stays open, as the protocol has it.
func (h *healthServer) Watch(q *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx, stop := h.life.bound(stream.Context())
	defer stop()
	next := h.changes(q.GetService())
	told := healthpb.HealthCheckResponse_ServingStatus(-1)
	for {
		over := next(ctx) != nil // the caller has gone; or the node is stopping, which is told
		if is := h.health(q.GetService()); is != told {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
				return err
			}
			told = is
		}
		if over {
			return h.life.end(stream.Context())
		}
	}
}

// changes returns what blocks until there may be something new of a name: not at first.
func (h *healthServer) changes(name string) func(context.Context) error {
	if name == healthServing {
		reader := h.routes.Reader()
		return func(ctx context.Context) error { _, err := reader.Next(ctx); return err }
	}
	watch := h.statuses.Watch()
	return func(ctx context.Context) error { _, err := watch.Next(ctx); return err }
}

// health says what is the case with a name. A leader that says no address cannot be
// forwarded to, so whoever follows it serves nothing.
func (h *healthServer) health(name string) healthpb.HealthCheckResponse_ServingStatus {
	var is bool
	switch s := h.statuses.Status(); name {
	case healthAll:
		leader, follows := s.Leader()
		is = (s.Role() == elector.Leading || follows && leader.Address != "") && !h.life.over()
	case healthLeader:
		is = s.Role() == elector.Leading && !h.life.over()
	case healthAlive:
		is = true // as long as it can be said: calls that are in flight may yet end well
	case healthServing:
		to := h.routes.Now()
		is = to.tenure != nil && !h.life.over()
	default:
		return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	}
	if is {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}
