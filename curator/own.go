package curator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf16"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
)

// registerOwn registers the curator's own services. They answer for this node and are never
// forwarded. Their streams end when the node is about to stop, so that the server can stop
// gracefully while callers still watch. They read the status for each answer, so they need no
// goroutine and are always up to date.
func (c *Curator) registerOwn(r grpc.ServiceRegistrar) {
	curatorpb.RegisterCuratorServer(r, announcer{Curator: c})
	healthpb.RegisterHealthServer(r, health{Curator: c})
}

// untilStopping returns a stream's context that also ends when the node is about to stop, and a
// function that releases it.
func (c *Curator) untilStopping(caller context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(caller)
	release := context.AfterFunc(c.answering, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// streamEnd is the status with which a stream ends: that of the caller's context if it has ended.
func (c *Curator) streamEnd(caller context.Context) error {
	if c.isStopping() && caller.Err() == nil {
		return status.Error(codes.Unavailable, "this node is stopping; the request can be retried at another node")
	}
	return status.FromContextError(caller.Err()).Err()
}

func (c *Curator) isStopping() bool { return c.answering.Err() != nil }

// announcer is the Curator service, which reports the leader.
type announcer struct {
	curatorpb.UnimplementedCuratorServer
	*Curator
}

// CurrentLeader sends the status at once and after each change. A caller that reads slowly receives
// the newest one; flow control delays only this stream.
func (a announcer) CurrentLeader(_ *curatorpb.CurrentLeaderRequest, stream grpc.ServerStreamingServer[curatorpb.CurrentLeaderResponse]) error {
	ctx, stop := a.untilStopping(stream.Context())
	defer stop()
	watch := a.Watch()
	var sent *curatorpb.CurrentLeaderResponse
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return a.streamEnd(stream.Context())
		}
		next := a.response(s)
		if proto.Equal(next, sent) {
			continue
		}
		if err := stream.Send(next); err != nil {
			return err
		}
		sent = next
	}
}

// response is a status at this moment, for a caller: if the process was suspended, the tenure may
// be over.
func (c *Curator) response(s elector.Status) *curatorpb.CurrentLeaderResponse {
	me := c.cfg.Elector
	r := &curatorpb.CurrentLeaderResponse{
		Election: text(me.Election), ThisNodeId: text(me.NodeID), ThisInstanceId: text(c.elector.Instance()),
	}
	if _, token, ok := s.Own(); ok {
		r.Role, r.Token = curatorpb.CurrentLeaderResponse_ROLE_LEADING, int64(token)
		r.LeaderNodeId, r.LeaderInstanceId, r.LeaderAddress = r.GetThisNodeId(), r.GetThisInstanceId(), text(c.elector.Address())
	} else if leader, ok := s.Leader(); ok {
		r.Role, r.Token = curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING, int64(leader.Token)
		r.LeaderNodeId, r.LeaderInstanceId, r.LeaderAddress = text(leader.NodeID), text(leader.Instance), text(leader.Address)
	} else if reason := s.Reason(); reason != nil {
		r.Reason = text(reason.Error())
	}
	return r
}

// The names that the health service answers for. They are about this node, not about the leader.
const (
	// healthAll: requests are served, here or by the leader.
	healthAll = ""
	// healthLeader: this node leads.
	healthLeader = "leader"
	// healthAlive: this node answers. Peers use it for heartbeats while calls are in flight.
	healthAlive = "alive"
	// healthServing: a tenure of this node is served. Peers watch it: a leader that stops
	// announces it before it refuses the first call.
	healthServing = "serving"
)

// health is the gRPC health service. gRPC's own implementation keeps a copy of the state, and its
// streams end only with the caller, so a server with a watching client could not stop gracefully.
type health struct {
	healthpb.UnimplementedHealthServer
	*Curator
}

// Check answers for one name. An unknown name is NotFound, as the protocol requires.
func (h health) Check(_ context.Context, q *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	is := h.health(q.GetService())
	if is == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Errorf(codes.NotFound, "unknown service %.64q", q.GetService())
	}
	return &healthpb.HealthCheckResponse{Status: is}, nil
}

// List answers for all names.
func (h health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	all := make(map[string]*healthpb.HealthCheckResponse)
	for _, name := range []string{healthAll, healthLeader, healthAlive, healthServing} {
		all[name] = &healthpb.HealthCheckResponse{Status: h.health(name)}
	}
	return &healthpb.HealthListResponse{Statuses: all}, nil
}

// Watch answers for one name at once and after each change. An unknown name is reported as unknown,
// and the stream stays open, as the protocol requires.
func (h health) Watch(q *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx, stop := h.untilStopping(stream.Context())
	defer stop()
	statuses, routes := h.elector.Watch(), h.router.Reader()
	sent := healthpb.HealthCheckResponse_ServingStatus(-1)
	for {
		var err error // the caller has disconnected; or the node is stopping, and its status is still sent
		if q.GetService() == healthServing {
			_, err = routes.Next(ctx)
		} else {
			_, err = statuses.Next(ctx)
		}
		if is := h.health(q.GetService()); is != sent {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
				return err
			}
			sent = is
		}
		if err != nil {
			return h.streamEnd(stream.Context())
		}
	}
}

// health is the current state of a name. A node that follows a leader without an address serves
// nothing, because it cannot forward calls.
func (c *Curator) health(name string) healthpb.HealthCheckResponse_ServingStatus {
	var is bool
	switch s := c.Status(); name {
	case healthAll:
		leader, follows := s.Leader()
		is = (s.Role() == elector.Leading || follows && leader.Address != "") && !c.isStopping()
	case healthLeader:
		is = s.Role() == elector.Leading && !c.isStopping()
	case healthAlive:
		is = true // also while it stops: calls in flight may still succeed
	case healthServing:
		is = c.router.Now().Tenure != nil && !c.isStopping()
	default:
		return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	}
	if is {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// roleAnswer is the body of an answer of a RoleHandler.
type roleAnswer struct {
	// Role is that of this node: "leading", "following" or "unknown".
	Role string `json:"role"`
	// Node is the ID of this node.
	Node string `json:"node"`
	// Leader is the ID of the node that leads, and Address where it takes requests; Token names its
	// tenure. They are empty and 0 while the role is unknown.
	Leader  string `json:"leader"`
	Address string `json:"address"`
	Token   int64  `json:"token"`
}

// RoleHandler returns an HTTP handler for load balancers. It answers 200 while this node has the
// role, else 503, with the role, the node, and the leader's ID, address and token as a JSON object.
// A node that is stopping answers 503 for every role, because it takes no more calls. The handler
// answers GET and HEAD, and may be mounted at any path. It never blocks, and works before, during
// and after Run.
func (c *Curator) RoleHandler(want elector.Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		s := c.Status()
		now := c.response(s)
		// It has only strings and a number, so it cannot fail.
		body, _ := json.Marshal(roleAnswer{
			Role: s.Role().String(), Node: now.GetThisNodeId(),
			Leader: now.GetLeaderNodeId(), Address: now.GetLeaderAddress(), Token: now.GetToken(),
		})
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-store") // the answer is for this moment only
		code := http.StatusServiceUnavailable
		if s.Role() == want && !c.isStopping() {
			code = http.StatusOK
		}
		w.WriteHeader(code)
		_, _ = w.Write(append(ascii(body), '\n')) // fails if the caller has disconnected
	})
}

// ascii writes all other characters of a JSON text as JSON's own escapes, which mean the same.
// Names of nodes may be printed on a terminal, and encoding/json escapes only the first 32 of the
// characters that a terminal interprets.
func ascii(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r < 0x7f { // not DEL
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
