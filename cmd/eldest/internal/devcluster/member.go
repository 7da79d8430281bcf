package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// MemberConfig describes one member. Name, Dir, the URLs and Initial are
// required; the rest has the defaults of etcd.
type MemberConfig struct {
	// Name is unique in the cluster.
	Name string
	// Dir is the member's data directory; it is made when it does not exist,
	// and a member that finds its data there takes up where it left off.
	Dir string
	// ClientURL is where clients are served, PeerURL where the other members
	// are told to reach this one, both http://ip:port.
	ClientURL, PeerURL string
	// PeerListen is where peers are really served; "" means at PeerURL. They
	// differ when something that can be cut stands between the members.
	PeerListen string
	// Initial lists the members of the new cluster as name=peerURL,...;
	// Existing joins a running cluster that lists this member already.
	Initial  string
	Existing bool
	// Token tells clusters apart whose members might meet by accident.
	Token string
	// Heartbeat and Election are etcd's timeouts; 0 means etcd's own default.
	// The shortest lease the cluster grants is 1.5 x Election, rounded up to
	// whole seconds.
	Heartbeat, Election time.Duration
	// NoFsync trades durability over a power loss for speed.
	NoFsync bool
	// Quota is the size in bytes at which the store refuses writes; 0 is
	// etcd's default.
	Quota int64
	// TokenTTL is the life of a token where authentication is on, in whole
	// seconds; 0 is etcd's default.
	TokenTTL time.Duration
	// MaxTxnOps is how many operations a transaction may have; 0 is etcd's default.
	MaxTxnOps uint
	// Replaceable has the cluster change its members whenever it is told to; etcd's
	// default is to refuse until all have been in touch for five seconds.
	Replaceable bool
	// Log receives etcd's log as JSON lines; nil discards it. Debug raises the
	// level from info to debug.
	Log   io.Writer
	Debug bool
}

// Member is one etcd server inside this process. Its methods may be called from
// many goroutines.
type Member struct {
	etcd *embed.Etcd
}

// StartMember starts a member and returns without waiting for it to join: a
// member of a new cluster is ready only when a majority of it has started. Use
// Ready to wait. The caller must Stop the member.
func StartMember(cfg MemberConfig) (*Member, error) {
	ec, err := cfg.embed()
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", cfg.Name, err)
	}
	etcd, err := embed.StartEtcd(ec)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", cfg.Name, err)
	}
	return &Member{etcd: etcd}, nil
}

// Ready blocks until the member serves requests, which takes a cluster with a
// leader, or until ctx ends or the member fails, and returns the reason.
func (m *Member) Ready(ctx context.Context) error {
	select {
	case <-m.etcd.Server.ReadyNotify():
		return nil
	case <-m.etcd.Server.StopNotify():
		return errors.New("the member stopped while it was starting")
	case err := <-m.etcd.Err():
		return err
	case <-ctx.Done():
		return fmt.Errorf("the member is not ready: %w", context.Cause(ctx))
	}
}

// ID is the member's ID in the cluster.
func (m *Member) ID() uint64 { return uint64(m.etcd.Server.MemberID()) }

// Done is closed when the server has stopped, for whatever reason.
func (m *Member) Done() <-chan struct{} { return m.etcd.Server.StopNotify() }

// Stop ends the member at once and waits for it: connections are reset, not
// drained, and leadership is not handed over first. A development cluster stops
// all its members together, so there is nobody to hand anything to, and each
// watch that is still open would otherwise hold the shutdown up for seconds. On a busy
// machine one sometimes does all the same, for 5 s and two election timeouts at most:
// etcd's server then waits for it before it hears of its own end.
func (m *Member) Stop() {
	m.etcd.Server.HardStop()
	m.etcd.Close()
}

// embed translates the config into etcd's. What Eldest has no use for is
// switched off, so that a member starts fast and does nothing unasked.
func (cfg MemberConfig) embed() (*embed.Config, error) {
	listen := cfg.PeerListen
	if listen == "" {
		listen = cfg.PeerURL
	}
	client, err1 := url.Parse(cfg.ClientURL)
	peer, err2 := url.Parse(cfg.PeerURL)
	peerListen, err3 := url.Parse(listen)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}

	ec := embed.NewConfig()
	ec.Name = cfg.Name
	ec.Dir = cfg.Dir
	ec.ListenClientUrls = []url.URL{*client}
	ec.AdvertiseClientUrls = []url.URL{*client}
	ec.ListenPeerUrls = []url.URL{*peerListen}
	ec.AdvertisePeerUrls = []url.URL{*peer}
	ec.InitialCluster = cfg.Initial
	ec.ClusterState = embed.ClusterStateFlagNew
	if cfg.Existing {
		ec.ClusterState = embed.ClusterStateFlagExisting
	}
	if cfg.Token != "" {
		ec.InitialClusterToken = cfg.Token
	}
	if cfg.Heartbeat > 0 {
		ec.TickMs = uint(max(1, cfg.Heartbeat.Milliseconds()))
	}
	if cfg.Election > 0 {
		ec.ElectionMs = uint(max(1, cfg.Election.Milliseconds()))
	}
	ec.BcryptCost = 4 // the least: every stream of a client asks for a token
	if cfg.TokenTTL > 0 {
		ec.AuthTokenTTL = uint(max(1, cfg.TokenTTL/time.Second))
	}
	ec.UnsafeNoFsync = cfg.NoFsync
	if cfg.MaxTxnOps > 0 {
		ec.MaxTxnOps = cfg.MaxTxnOps
	}
	ec.QuotaBackendBytes = cfg.Quota
	ec.StrictReconfigCheck = !cfg.Replaceable
	ec.EnableGRPCGateway = false
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(cfg.logger())
	return ec, nil
}

// logger writes etcd's log to cfg.Log, or nowhere. It is not etcd's own logger
// set-up because that one names files and standard streams only.
func (cfg MemberConfig) logger() *zap.Logger {
	if cfg.Log == nil {
		return zap.NewNop()
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	level := zapcore.InfoLevel
	if cfg.Debug {
		level = zapcore.DebugLevel
	}
	sink := zapcore.Lock(zapcore.AddSync(cfg.Log))
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), sink, level)).Named(cfg.Name)
}
