package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
)

// etcdFlags are the flags of "eldest etcd".
type etcdFlags struct {
	members     int
	dataDir     string
	heartbeatMS int
	electionMS  int
	clientPorts []int
	log         bool
}

func newEtcdCmd() *cobra.Command {
	var f etcdFlags
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run a development etcd cluster until a signal ends it",
		Long: `Runs an etcd cluster for development inside this process, on free ports of
127.0.0.1, and ends on SIGINT or SIGTERM. Without --data-dir the data lives in a
temporary directory that is removed at the end; with it, the same command brings
the same cluster back, on the same ports.

Not for production: there is no TLS, and all members share this process.`,
		Example: `  eldest etcd --members 3
  eldest etcd --data-dir ./etcd --client-port 2379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEtcd(cmd, f) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.members, "members", 0, "number of members: 1, 3 or 5 (default 1, or what --data-dir holds)")
	fl.StringVar(&f.dataDir, "data-dir", "", "keep the data here (default: a temporary directory)")
	fl.IntVar(&f.heartbeatMS, "heartbeat", int(devcluster.DefaultHeartbeat.Milliseconds()), "etcd's heartbeat interval in ms")
	fl.IntVar(&f.electionMS, "election", int(devcluster.DefaultElection.Milliseconds()),
		"etcd's election timeout in ms; leases last 1.5 times as long at least, rounded up to seconds")
	fl.IntSliceVar(&f.clientPorts, "client-port", nil, "client port of the first member, of the second, ... (default: free ones)")
	fl.BoolVar(&f.log, "log", false, "write etcd's logs to stderr")
	cmd.AddCommand(newEtcdMemberCmd())
	return cmd
}

func runEtcd(cmd *cobra.Command, f etcdFlags) error {
	if f.heartbeatMS <= 0 || f.electionMS <= 0 {
		return cli.Usagef("--heartbeat and --election must be positive")
	}
	cfg := devcluster.Config{
		Members:     f.members,
		Dir:         f.dataDir,
		Heartbeat:   time.Duration(f.heartbeatMS) * time.Millisecond,
		Election:    time.Duration(f.electionMS) * time.Millisecond,
		ClientPorts: f.clientPorts,
	}
	if f.log {
		cfg.Log = cmd.ErrOrStderr()
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
	if err := printCluster(cmd.OutOrStdout(), cluster, cli.WantsJSON(cmd)); err != nil {
		return errors.Join(err, cluster.Close())
	}
	<-cmd.Context().Done()
	return cluster.Close()
}

// printCluster writes what a user needs to reach the cluster, as a table with a
// line for the shell or as one JSON object.
func printCluster(w io.Writer, c *devcluster.Cluster, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			Endpoints []string          `json:"endpoints"`
			Members   []devcluster.Info `json:"members"`
		}{c.Endpoints(), c.Members()})
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "MEMBER\tID\tCLIENT URL\tPEER URL\tDATA")
	for _, m := range c.Members() {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.ID, m.ClientURL, m.PeerURL, m.DataDir)
	}
	fmt.Fprintf(tw, "\nRunning until Ctrl-C. For the other terminals:\n\nexport ELDEST_ENDPOINTS=%s\n", strings.Join(c.Endpoints(), ","))
	return tw.Flush()
}
