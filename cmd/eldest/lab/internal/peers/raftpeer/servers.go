package raftpeer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/fleet"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// servers are the process of the extra voters. The other voters are participants.
type servers struct {
	fleet   *fleet.Fleet
	control string
	caller  *caller
}

func start(ctx context.Context, cfg peer.ServerConfig) (_ peer.Servers, err error) {
	ports, err := cfg.Ports(1)
	if err != nil {
		return nil, err
	}
	s := &servers{fleet: fleet.New(cfg.Run, cfg.Died), control: "127.0.0.1:" + strconv.Itoa(ports[0]), caller: newCaller(direct{})}
	args := []string{"bench", "peers-server", "raft", cfg.Setting, s.control}
	if err := s.fleet.Start("the extra voter", peer.Program{Path: cfg.Executable, Args: args, Dir: cfg.Dir}); err != nil {
		return nil, err
	}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := s.Writes(ctx)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Version is the version of the module: there is no other server.
func (s *servers) Version() string {
	version := "(version unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/hashicorp/raft" {
				version = strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "hashicorp/raft " + version
}

// Nodes is the number of voters of each election.
func (s *servers) Nodes() int { return 3 }

// Endpoints is the control address of the extra voters' process.
func (s *servers) Endpoints() []string { return []string{s.control} }

func (s *servers) Writes(ctx context.Context) (n int64, err error) {
	err = s.caller.call(ctx, s.control, writesPath, nil, &n)
	return n, err
}

func (s *servers) KillLeader(context.Context) (killed time.Time, restart func(context.Context) error, err error) {
	return killed, nil, fmt.Errorf("the leader is a participant: %w", errors.ErrUnsupported)
}

func (s *servers) Close() error { return s.fleet.Close() }
