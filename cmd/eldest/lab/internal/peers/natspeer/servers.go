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

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/fleet"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	nodes = 3
	// bucket has the leader keys and the logs of all elections; stream is the server's name of it.
	bucket = "leaders"
	stream = "KV_" + bucket
)

// servers are a cluster.
type servers struct {
	fleet     *fleet.Fleet
	endpoints []string
	conn      *nats.Conn // of this process
	js        jetstream.JetStream
}

func start(ctx context.Context, cfg peer.ServerConfig) (_ peer.Servers, err error) {
	ports, err := cfg.Ports(2 * nodes)
	if err != nil {
		return nil, err
	}
	s := &servers{fleet: fleet.New(cfg.Run, cfg.Died)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for i := range nodes {
		file := filepath.Join(cfg.Dir, fmt.Sprintf("node%d.conf", i))
		if err := os.WriteFile(file, []byte(configuration(cfg.Dir, i, ports[i], ports[nodes:])), 0o600); err != nil {
			return nil, err
		}
		args := []string{"bench", "peers-server", "nats", file}
		if err := s.fleet.Start(nodeName(i), peer.Program{Path: cfg.Executable, Args: args, Dir: cfg.Dir}); err != nil {
			return nil, err
		}
		s.endpoints = append(s.endpoints, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	create := func(ctx context.Context) error {
		_, err := s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, Replicas: nodes, TTL: settings[cfg.Setting].ttl, LimitMarkerTTL: markerTTL,
		})
		return err
	}
	// The cluster has to elect its own leader first, which refuses to create streams until it knows all servers.
	if err := retry(ctx, create); err != nil {
		return nil, fmt.Errorf("creating the bucket: %w", err)
	}
	if err := retry(ctx, s.complete); err != nil {
		return nil, err
	}
	return s, nil
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
func (s *servers) connect(ctx context.Context) (err error) {
	err = retry(ctx, func(context.Context) (err error) {
		s.conn, err = nats.Connect(strings.Join(s.endpoints, ","), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
		return err
	})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

// retry calls f until it succeeds, or ctx ends.
func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(call)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
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

func (s *servers) Version() string     { return "NATS " + s.conn.ConnectedServerVersion() }
func (s *servers) Nodes() int          { return nodes }
func (s *servers) Endpoints() []string { return s.endpoints }

// Writes is the last sequence of the bucket's stream: all entries, updates and markers.
func (s *servers) Writes(ctx context.Context) (int64, error) {
	info, err := s.info(ctx)
	if err != nil {
		return 0, err
	}
	return int64(info.State.LastSeq), nil
}

// KillLeader kills the leader of the bucket's stream.
func (s *servers) KillLeader(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return killed, nil, err
	}
	leader := info.Cluster.Leader
	killed = time.Now()
	if err := s.fleet.Kill(leader); err != nil {
		return killed, nil, err
	}
	return killed, func(ctx context.Context) error {
		if err := s.fleet.Restart(leader); err != nil {
			return err
		}
		return retry(ctx, s.complete)
	}, nil
}

func (s *servers) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	return s.fleet.Close()
}
