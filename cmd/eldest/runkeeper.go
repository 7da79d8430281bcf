//go:build unix

package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/keeper"
)

// keeperCommand is how "eldest run" starts itself again.
const keeperCommand = "run-keeper"

// newKeeperCmd is the process that watches over the program of "eldest run".
func newKeeperCmd() *cobra.Command {
	return &cobra.Command{
		Use:    keeperCommand + " ELECTION",
		Short:  "Watch over a program; started by eldest run and by nobody else",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(*cobra.Command, []string) error { return job.Keep(bequest) },
	}
}

// bequest is what the keeper of "eldest run" does for it once it is dead, and so is the program:
// nobody acts under the lease any more, so it is revoked.
func bequest(with []byte) (farewell func() error) {
	var left estate
	if err := json.Unmarshal(with, &left); err != nil {
		return nil // the lease expires
	}
	revoker := keeper.NewRevoker(func(ctx context.Context) (*clientv3.Client, error) { return left.Conn.Dial(ctx) })
	return func() error { return revoker.Farewell(left.TTL, left.Lease) }
}

// estate is what "eldest run" leaves.
type estate struct {
	Conn  *connect.Flags   `json:"conn"`
	Lease clientv3.LeaseID `json:"lease"`
	// TTL is that of the lease: so long it is tried to revoke it.
	TTL time.Duration `json:"ttl"`
}
