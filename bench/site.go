package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Site is the cluster that is measured on, and what surrounds it. Client.Endpoints is
// required; what is nil or 0 of the rest is not known or not to be had.
type Site struct {
	// Client is the template of every client: endpoints, credentials, time-outs.
	Client clientv3.Config
	// Members is the number of the cluster's members, Version its etcd version, and
	// Storage says where it keeps its data; all are for the report only.
	Members int
	Version string
	Storage string
	// Metrics reads the servers' counters, added up over all members. The keys are
	// the names of the series, without labels.
	Metrics func(ctx context.Context) (map[string]float64, error)
	// Spawn starts a process that runs Work, and returns its two ends and what
	// kills it, at once and without any farewell. Closing in must end it, too.
	Spawn func(ctx context.Context) (*Spawned, error)
}

// Spawned is a process that runs Work.
type Spawned struct {
	In  io.WriteCloser
	Out io.Reader
	// Kill ends the process as SIGKILL does, and returns when it is gone. Killing
	// twice does nothing.
	Kill func() error
}

// dial makes a client of the site. with are further options, of a Wire or a line.
func (s Site) dial(with ...grpc.DialOption) (*clientv3.Client, error) {
	cfg := s.Client
	cfg.DialOptions = append(slices.Clone(cfg.DialOptions), with...)
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("dialling %v: %w", cfg.Endpoints, err)
	}
	return client, nil
}
