package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/lab"
)

func newEtcdCmd() *cobra.Command {
	var cfg devcluster.Config
	var log bool
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run a development etcd cluster until a signal ends it",
		Long: `Runs an etcd cluster for development inside this process, on free ports of
127.0.0.1, and ends on SIGINT or SIGTERM. Without --data-dir the data is in a
temporary directory that is removed at the end; with it, the same command brings
the same cluster back, on the same ports. With --json it prints one object with
endpoints and members (name, id, client_url, peer_url, data_dir). The client URLs serve
gRPC, etcd's JSON gateway (/v3/kv/range and so on, by POST), /version, /health and /metrics.

Not for production: there is no TLS, and all members share this process.

Exit codes: 0 after a signal; 1 failed; 2 bad usage.`,
		Example: `  eldest etcd --members 3
  eldest etcd --data-dir ./etcd --client-port 2379`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if log {
				cfg.Log = cmd.ErrOrStderr()
			}
			return runEtcd(cmd, cfg)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.Members, "members", 0, "number of members: 1, 3 or 5 (default 1, or what --data-dir holds)")
	fl.StringVar(&cfg.Dir, "data-dir", "", "keep the data here (default: a temporary directory)")
	fl.IntVar(&cfg.HeartbeatMS, "heartbeat", devcluster.DefaultHeartbeatMS, "etcd's heartbeat interval in ms")
	fl.IntVar(&cfg.ElectionMS, "election", devcluster.DefaultElectionMS,
		"etcd's election timeout in ms; leases last 1.5 times as long at least, rounded up to seconds")
	fl.IntSliceVar(&cfg.ClientPorts, "client-port", nil, "client port of the first member, of the second, ... (default: free ones)")
	fl.BoolVar(&log, "log", false, "write etcd's logs to stderr")
	cmd.AddCommand(lab.NewMemberCmd())
	return cmd
}

func runEtcd(cmd *cobra.Command, cfg devcluster.Config) error {
	if err := cli.Positive(cmd.Flags(), "members", "heartbeat", "election"); err != nil {
		return err
	}
	// A signal during the start ends it; a signal after it is the normal end.
	ctx, cancel := context.WithTimeout(cmd.Context(), devcluster.StartTimeout)
	defer cancel()
	cluster, err := devcluster.Start(ctx, cfg)
	switch {
	case errors.Is(err, devcluster.ErrInvalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil && cmd.Context().Err() != nil:
		return nil
	case err != nil:
		return err
	}
	if err := showCluster(cmd, cluster); err != nil {
		return errors.Join(err, cluster.Close())
	}
	<-cmd.Context().Done()
	return cluster.Close()
}

// showCluster writes what a user needs to reach the cluster, as a table with a
// line for the shell or as one JSON object.
func showCluster(cmd *cobra.Command, c *devcluster.Cluster) error {
	return show(cmd, struct {
		Endpoints []string          `json:"endpoints"`
		Members   []devcluster.Info `json:"members"`
	}{c.Endpoints(), c.Members}, func(w io.Writer) {
		rows := []string{"MEMBER\tID\tCLIENT URL\tPEER URL\tDATA"}
		for _, m := range c.Members {
			rows = append(rows, strings.Join([]string{m.Name, m.ID, m.ClientURL, m.PeerURL, m.DataDir}, "\t"))
		}
		table(w, rows...)
		_, _ = fmt.Fprintf(w, "\nRunning until Ctrl-C. For the other terminals:\n\nexport ELDEST_ENDPOINTS=%s\n", strings.Join(c.Endpoints(), ","))
	})
}
