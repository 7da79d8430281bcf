package endpoints

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// limit bounds the request that checks an endpoint.
const limit = 2 * time.Second

// reached is a member that answered at an endpoint.
type reached struct {
	endpoint string
	id       uint64
}

// probing returns the config of clients for the probes of a client that was made with cfg. They do not
// log in: their requests have the token t, which is that of the client.
func probing(cfg clientv3.Config, of *clientv3.Client, t *token) clientv3.Config {
	if cfg.Username != "" {
		cfg.DialOptions = append(slices.Clip(cfg.DialOptions), grpc.WithPerRPCCredentials(t))
	}
	cfg.Username, cfg.Password, cfg.RejectOldCluster = "", "", false
	cfg.Context, cfg.Logger, cfg.LogConfig = of.Ctx(), of.GetLogger(), nil
	return cfg
}

// token is a client's auth token, which is empty before it has logged in. It implements
// credentials.PerRPCCredentials.
type token struct{ atomic.Value }

// GetRequestMetadata returns the header with the token.
func (t *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if is, _ := t.Load().(string); is != "" {
		return map[string]string{rpctypes.TokenFieldNameGRPC: is}, nil
	}
	return nil, nil
}

// RequireTransportSecurity is false, as it is for etcd's client.
func (t *token) RequireTransportSecurity() bool { return false }

// probe asks all endpoints at once which member of the cluster they are, each on a connection of
// its own with the client's credentials. It returns those that answered in time, in the order of
// the endpoints, and blocks for no longer than limit.
//
// It uses a client of its own, whose endpoints do not change: when etcd's client dials one endpoint
// it reads the first of all without its lock, and crashes if there is none.
func (s *set) probe(endpoints []string) (answered []reached) {
	if len(endpoints) == 0 {
		return nil
	}
	prober, err := clientv3.New(s.probing)
	if err != nil {
		return nil
	}
	defer func() { _ = prober.Close() }()
	ctx, cancel := context.WithTimeout(prober.Ctx(), limit)
	defer cancel()
	ids := make([]uint64, len(endpoints)) // 0: no answer
	var all sync.WaitGroup
	for i, endpoint := range endpoints {
		all.Go(func() {
			if resp, err := prober.Status(ctx, endpoint); err == nil && resp.Header.GetClusterId() == s.cluster {
				ids[i] = resp.Header.GetMemberId()
			}
		})
	}
	all.Wait()
	for i, endpoint := range endpoints {
		if ids[i] != 0 {
			answered = append(answered, reached{endpoint, ids[i]})
		}
	}
	return answered
}
