package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// segment is the size of a log segment. etcd's 64 MB are written out ahead of
// use, which is most of the cost of a start.
const segment = 256 << 10

// tick is etcd's default; with ten to an election the least TTL is 2 s.
const tick = 100 * time.Millisecond

func init() { wal.SegmentSizeBytes = segment }

// Server is one etcd member and its gRPC front.
type Server struct {
	// Tap holds every change of the store since the first start.
	Tap *Tap

	dir  string
	with Options

	mu       sync.Mutex
	etcd     *etcdserver.EtcdServer
	grpc     *grpc.Server
	listener *listener
	served   chan struct{}
	hosts    []*Host
	refusals map[Refusal]int
}

func newServer(dir string, with Options, now func() time.Duration) *Server {
	with.Tick = max(with.Tick, tick)
	return &Server{with: with, dir: filepath.Join(dir, "data"), refusals: map[Refusal]int{}, Tap: newTap(now)}
}

// Up reports whether the member runs.
func (s *Server) Up() bool { return s.front() != nil }

// Rev returns the revision of the store, also while the member is down.
func (s *Server) Rev() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd == nil {
		return s.Tap.Rev()
	}
	return s.etcd.KV().Rev()
}

// Start starts the member, with its data if it ran before, and returns when it serves: about a
// virtual second, for its election. It does nothing if the member runs.
func (s *Server) Start() error {
	if s.Up() {
		return nil
	}
	srv, err := etcdserver.NewServer(s.config())
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	srv.Start()
	<-srv.ReadyNotify()
	s.Tap.attach(srv.KV())

	// A goroutine for each request would grow its stack each time, a tenth of all work.
	const workers = 16
	front := v3rpc.Server(srv, nil, nil, grpc.NumStreamWorkers(workers))
	l, served := newListener(), make(chan struct{})
	go func() {
		defer close(served)
		_ = front.Serve(l)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.etcd, s.grpc, s.listener, s.served = srv, front, l, served
	return nil
}

// Stop stops the member and keeps its data. Calling it again does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	etcd, front, l, served := s.etcd, s.grpc, s.listener, s.served
	s.listener = nil
	s.mu.Unlock()
	if etcd == nil {
		return
	}
	_ = l.Close()
	// A kernel does that for a process that ends. Without this, gRPC first waits for connections
	// whose handshake is not complete, for up to two minutes.
	for _, h := range s.admitted() {
		h.hangUp()
	}
	front.Stop()
	<-served
	s.Tap.detach()
	s.mu.Lock()
	s.etcd = nil
	s.mu.Unlock()
	etcd.Stop()
}

func (s *Server) config() config.ServerConfig {
	here := types.MustNewURLs([]string{"http://127.0.0.1:2380"})
	return config.ServerConfig{
		Name:                 "sim",
		DataDir:              s.dir,
		ClientURLs:           types.URLs([]url.URL{here[0]}),
		PeerURLs:             here,
		InitialPeerURLsMap:   types.URLsMap{"sim": here},
		InitialClusterToken:  "sim",
		NewCluster:           true,
		TickMs:               uint(s.with.Tick / time.Millisecond),
		ElectionTicks:        10,
		BackendBatchInterval: time.Second,
		MaxTxnOps:            128,
		MaxRequestBytes:      1536 << 10,
		MaxConcurrentStreams: 1 << 20,
		WarningApplyDuration: time.Hour,
		AuthToken:            "simple",
		TokenTTL:             uint(max(s.with.Tokens, time.Second) / time.Second),
		BcryptCost:           4, // the least: each stream of a client requests a token
		CompactHashCheckTime: time.Hour,
		DowngradeCheckTime:   time.Hour,
		MaxLearners:          1,
		UnsafeNoFsync:        true,
		Logger:               zap.NewNop(),
		ServerFeatureGate:    features.NewDefaultServerFeatureGate("sim", zap.NewNop()),
	}
}

// front returns the listener to connect to, or nil while the server is down.
func (s *Server) front() *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener
}

func (s *Server) admit(h *Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, h)
}

func (s *Server) admitted() []*Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hosts)
}

// Full raises the alarm that etcd raises when its data exceeds its quota, or clears it. While the
// alarm is active, requests that need space are refused; deletions, reads and renewals succeed. It
// survives restarts.
func (s *Server) Full(full bool) error {
	s.mu.Lock()
	etcd := s.etcd
	s.mu.Unlock()
	if etcd == nil {
		return errors.New("the alarm: the server is down")
	}
	action := pb.AlarmRequest_DEACTIVATE
	if full {
		action = pb.AlarmRequest_ACTIVATE
	}
	_, err := etcd.Alarm(context.Background(), &pb.AlarmRequest{Action: action, MemberID: uint64(etcd.MemberID()), Alarm: pb.AlarmType_NOSPACE})
	return err
}

// The users of hosts, if authentication is on.
const (
	root        = "root" // etcd's name for it
	participant = "participant"
	password    = "sesame"
)

// authenticate creates the users and turns authentication on.
func (s *Server) authenticate() error {
	ctx := context.Background()
	var errs []error
	try := func(_ any, err error) { errs = append(errs, err) }
	for _, name := range []string{root, participant} {
		try(s.etcd.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: password}))
		try(s.etcd.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name}))
		try(s.etcd.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: name, Role: name}))
	}
	for _, r := range s.with.Ranges {
		may := &authpb.Permission{PermType: authpb.Permission_READWRITE, Key: []byte(r[0]), RangeEnd: []byte(r[1])}
		try(s.etcd.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: participant, Perm: may}))
	}
	try(s.etcd.AuthEnable(ctx, &pb.AuthEnableRequest{}))
	return errors.Join(errs...)
}

// Refusal is a reason for which the server refused a host's request, as the host received it: the
// proof that a fault of the server took effect.
type Refusal string

// The refusals that are counted.
const (
	NoSpace      Refusal = "no space"      // the NOSPACE alarm is active
	InvalidToken Refusal = "invalid token" // of authentication: expired, or unknown since a restart
	Compacted    Refusal = "watch overrun" // a watch requested a compacted revision
	Denied       Refusal = "not permitted" // authentication: the role has no permission
	NoLease      Refusal = "lease is gone" // renewals and registrations of leases that have expired or were revoked
)

var reasons = map[error]Refusal{
	rpctypes.ErrNoSpace: NoSpace, rpctypes.ErrInvalidAuthToken: InvalidToken, rpctypes.ErrPermissionDenied: Denied, rpctypes.ErrLeaseNotFound: NoLease,
}

// Refusals returns how often the server refused something, by reason.
func (s *Server) Refusals() map[Refusal]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.refusals)
}

// refused counts a refusal that a host receives, as an error or as a message of a watch.
func (s *Server) refused(m any, err error) {
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && resp.CompactRevision != 0 {
		s.count(Compacted)
	}
	var known rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &known) && reasons[known] != "" {
		s.count(reasons[known])
	}
}

func (s *Server) count(why Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[why]++
}
