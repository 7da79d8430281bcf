package rig

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

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

// Start starts the member, with its data if it ran before, and returns when it
// serves: about a virtual second, for its election. A member that runs is left
// alone.
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
	front := v3rpc.Server(srv, nil, s.unary, grpc.ChainStreamInterceptor(s.stream), grpc.NumStreamWorkers(workers))
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
	// As a kernel does for a process that ends. Without this, gRPC first waits for
	// connections that have not yet said hello, for up to two minutes.
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
		BcryptCost:           4, // the least: every stream of a client asks for a token
		CompactHashCheckTime: time.Hour,
		DowngradeCheckTime:   time.Hour,
		MaxLearners:          1,
		UnsafeNoFsync:        true,
		Logger:               zap.NewNop(),
		ServerFeatureGate:    features.NewDefaultServerFeatureGate("sim", zap.NewNop()),
	}
}

// front returns where to connect, or nil while the server is down.
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
