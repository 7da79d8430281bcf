package devcluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// layout is what must stay the same between two runs of a cluster: etcd stores the peer URLs in its
// data, and programs store the endpoints in theirs.
type layout struct {
	Token   string         `json:"token"`
	Members []memberLayout `json:"members"`
}

type memberLayout struct {
	Name       string `json:"name"`
	ClientPort int    `json:"client_port"`
	PeerPort   int    `json:"peer_port"`
}

// layoutFile is the name of the layout's file in the data directory.
const layoutFile = "cluster.json"

// openLayout reads the layout of dir, or makes one according to cfg and writes it.
func openLayout(dir string, cfg Config) (layout, error) {
	path := filepath.Join(dir, layoutFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newLayout(dir, path, cfg)
	}
	if err != nil {
		return layout{}, err
	}
	var lay layout
	if err := json.Unmarshal(data, &lay); err != nil {
		return layout{}, fmt.Errorf("%s: %w", path, err)
	}
	if n := len(lay.Members); cfg.Members != 0 && cfg.Members != n {
		return layout{}, fmt.Errorf("%w: %s holds a cluster of %d members, not %d", ErrInvalid, dir, n, cfg.Members)
	}
	if err := cfg.ports(len(lay.Members)); err != nil {
		return layout{}, err
	}
	// The client ports may change, because etcd publishes them anew at each start; the peer ports may
	// not.
	for i := range lay.Members {
		if i < len(cfg.ClientPorts) {
			lay.Members[i].ClientPort = cfg.ClientPorts[i]
		}
	}
	return lay, nil
}

// ports refuses more client ports than members.
func (cfg Config) ports(members int) error {
	if len(cfg.ClientPorts) > members {
		return fmt.Errorf("%w: --client-port has %d ports for %d members", ErrInvalid, len(cfg.ClientPorts), members)
	}
	return nil
}

func newLayout(dir, path string, cfg Config) (layout, error) {
	n := cmp.Or(cfg.Members, 1)
	if n != 1 && n != 3 && n != 5 {
		return layout{}, fmt.Errorf("%w: --members %d: want 1, 3 or 5", ErrInvalid, cfg.Members)
	}
	if err := cfg.ports(n); err != nil {
		return layout{}, err
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return layout{}, err
	}
	lay := layout{Token: fmt.Sprintf("eldest-%x", rand.Uint64())}
	for i := range n {
		m := memberLayout{Name: fmt.Sprintf("m%d", i+1), ClientPort: ports[2*i], PeerPort: ports[2*i+1]}
		if i < len(cfg.ClientPorts) {
			m.ClientPort = cfg.ClientPorts[i]
		}
		lay.Members = append(lay.Members, m)
	}
	data, err := json.MarshalIndent(lay, "", "  ")
	if err != nil {
		return layout{}, err
	}
	// etcd makes the data of a member readable only for its owner; this directory must be the same.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return layout{}, err
	}
	return lay, os.WriteFile(path, append(data, '\n'), 0o600)
}

// configs turns the layout into etcd's configs of its members. What they serve is what etcd serves by
// default, the JSON gateway included.
func (l layout) configs(dir string, cfg Config, temporary bool) []*embed.Config {
	var initial []string
	configs := make([]*embed.Config, len(l.Members))
	log := logger(cfg.Log) // one for all: it locks
	for i, m := range l.Members {
		client, peer := local(m.ClientPort), local(m.PeerPort)
		initial = append(initial, m.Name+"="+peer[0].String())
		ec := embed.NewConfig()
		ec.Name, ec.Dir, ec.InitialClusterToken = m.Name, filepath.Join(dir, m.Name), l.Token
		ec.ListenClientUrls, ec.AdvertiseClientUrls = client, client
		ec.ListenPeerUrls, ec.AdvertisePeerUrls = peer, peer
		ec.TickMs, ec.ElectionMs = uint(cfg.HeartbeatMS), uint(cfg.ElectionMS)
		ec.UnsafeNoFsync = temporary
		ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log.Named(m.Name))
		configs[i] = ec
	}
	for _, ec := range configs {
		ec.InitialCluster = strings.Join(initial, ",")
	}
	return configs
}

func local(port int) []url.URL {
	return []url.URL{{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}}
}

// logger returns a logger that writes etcd's log, or nothing. etcd's own logger set-up is not used,
// because it takes only files and standard streams.
func logger(to io.Writer) *zap.Logger {
	if to == nil {
		return zap.NewNop()
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(zapcore.AddSync(to)), zapcore.InfoLevel))
}

// The ports that freePorts chooses from are below the range from which
// operating systems take the ports of outgoing connections (Linux: 32768 and up),
// so that no connection can take a member's port while the member is down.
const (
	firstPort = 20000
	lastPort  = 29999
)

// freePorts returns n ports that are free on 127.0.0.1 now. They are not reserved until they are
// used.
func freePorts(n int) (ports []int, err error) {
	for range 100 + 10*n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // at the end, so that one port is not found twice
		ports = append(ports, port)
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}
