package natspeer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	nodes = 3
	// bucket has the leader keys and the logs of all elections; stream is the server's name of it.
	bucket = "leaders"
	stream = "KV_" + bucket
)

// servers are a cluster, as this process uses it.
type servers struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

func start(ctx context.Context, cfg peer.ServerConfig) (_ *peer.Servers, err error) {
	ports, err := cfg.Fleet.Ports(2 * nodes)
	if err != nil {
		return nil, err
	}
	var endpoints []string
	for i := range nodes {
		file := filepath.Join(cfg.Dir, nodeName(i)+".conf")
		if err := os.WriteFile(file, []byte(configuration(cfg.Dir, i, ports[i], ports[nodes:])), 0o600); err != nil {
			return nil, err
		}
		args := []string{"bench", "peers-server", "nats", file}
		if err := cfg.Fleet.Start(nodeName(i), peer.Program{Path: cfg.Executable, Args: args, Dir: cfg.Dir}); err != nil {
			return nil, err
		}
		endpoints = append(endpoints, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	s := &servers{}
	if err := cfg.Fleet.Await(ctx, nodeName(0), func(context.Context) error { return s.connect(endpoints) }); err != nil {
		return nil, err
	}
	// The cluster has to elect its own leader first, which refuses to create streams until it knows all servers.
	if err := cfg.Fleet.Await(ctx, nodeName(0), func(ctx context.Context) error {
		_, err := s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, Replicas: nodes, TTL: settings[cfg.Setting].ttl, LimitMarkerTTL: markerTTL,
		})
		if err != nil {
			return err
		}
		return s.complete(ctx)
	}); err != nil {
		s.conn.Close()
		return nil, err
	}
	return &peer.Servers{
		Version: "NATS " + s.conn.ConnectedServerVersion(), Nodes: nodes, Endpoints: endpoints, Writes: s.writes,
		KillLeader: func(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error) {
			return cfg.Fleet.KillLeader(ctx, s.leader, func(ctx context.Context, _ string) error { return s.complete(ctx) })
		},
		Close: func() error { s.conn.Close(); return nil },
	}, nil
}

func nodeName(i int) string { return fmt.Sprintf("node%d", i) }

// configuration is a server's configuration file: all that it does not set is the server's default. The limit of
// consumers is one of watches: its default, 1000 in a stream, is less than the scenarios need.
func configuration(dir string, i, port int, routePorts []int) string {
	var routes []string
	for _, p := range routePorts {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	return fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
jetstream {
  store_dir: %q
  limits { default_max_consumers: -1 }
}
cluster {
  name: peers
  listen: "127.0.0.1:%d"
  no_advertise: true
  routes: ["%s"]
}
`, nodeName(i), port, filepath.Join(dir, nodeName(i)), routePorts[i], strings.Join(routes, `", "`))
}

// connect opens the connection of this process, which outlives a server that is killed.
func (s *servers) connect(endpoints []string) (err error) {
	s.conn, err = nats.Connect(strings.Join(endpoints, ","), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err == nil {
		s.js, err = jetstream.New(s.conn)
	}
	return err
}

func (s *servers) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	bucketStream, err := s.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info := bucketStream.CachedInfo()
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return nil, errors.New("the bucket has no leader")
	}
	return info, nil
}

// leader returns the name of the server that leads the bucket's stream.
func (s *servers) leader(ctx context.Context) (string, error) {
	info, err := s.info(ctx)
	if err != nil {
		return "", err
	}
	return info.Cluster.Leader, nil
}

// complete returns an error if not all replicas of the bucket are up to date.
func (s *servers) complete(ctx context.Context) error {
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current || r.Offline {
			return fmt.Errorf("replica %s of the bucket is not up to date", r.Name)
		}
	}
	if len(info.Cluster.Replicas) != nodes-1 {
		return errors.New("the bucket does not have all replicas")
	}
	return nil
}

// writes is the last sequence of the bucket's stream: all entries, updates and markers. Its request is repeated,
// because a request gets no answer while the servers change their leader.
func (s *servers) writes(ctx context.Context) (n int64, err error) {
	err = peer.Retry(ctx, func(ctx context.Context) error {
		info, err := s.info(ctx)
		if err == nil {
			n = int64(info.State.LastSeq)
		}
		return err
	})
	return n, err
}
