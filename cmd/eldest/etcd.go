package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
)

// etcdFlags are the flags of "eldest etcd".
type etcdFlags struct {
	cfg                     devcluster.Config
	heartbeatMS, electionMS int
	log                     bool
}

func newEtcdCmd() *cobra.Command {
	var f etcdFlags
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
		RunE: func(cmd *cobra.Command, _ []string) error { return runEtcd(cmd, f) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.cfg.Members, "members", 0, "number of members: 1, 3 or 5 (default 1, or what --data-dir holds)")
	fl.StringVar(&f.cfg.Dir, "data-dir", "", "keep the data here (default: a temporary directory)")
	fl.IntVar(&f.heartbeatMS, "heartbeat", int(devcluster.DefaultHeartbeat.Milliseconds()), "etcd's heartbeat interval in ms")
	fl.IntVar(&f.electionMS, "election", int(devcluster.DefaultElection.Milliseconds()),
		"etcd's election timeout in ms; leases last 1.5 times as long at least, rounded up to seconds")
	fl.IntSliceVar(&f.cfg.ClientPorts, "client-port", nil, "client port of the first member, of the second, ... (default: free ones)")
	fl.BoolVar(&f.log, "log", false, "write etcd's logs to stderr")
	cmd.AddCommand(newEtcdMemberCmd())
	return cmd
}

// check refuses bad flags before anything is started.
func (f etcdFlags) check(flags *pflag.FlagSet) error {
	if err := cli.Positive(flags, "members", "heartbeat", "election"); err != nil {
		return err
	}
	if f.electionMS < 5*f.heartbeatMS {
		return cli.Usagef("--election %d is less than five times --heartbeat %d", f.electionMS, f.heartbeatMS)
	}
	for _, port := range f.cfg.ClientPorts {
		if port < 1 || port > 65535 {
			return cli.Usagef("--client-port %d: want 1 to 65535", port)
		}
	}
	return nil
}

func runEtcd(cmd *cobra.Command, f etcdFlags) error {
	if err := f.check(cmd.Flags()); err != nil {
		return err
	}
	f.cfg.Heartbeat, f.cfg.Election = time.Duration(f.heartbeatMS)*time.Millisecond, time.Duration(f.electionMS)*time.Millisecond
	if f.log {
		f.cfg.Log = cmd.ErrOrStderr()
	}
	// A signal during the start ends it; a signal after it is the normal end.
	ctx, cancel := context.WithTimeout(cmd.Context(), devcluster.StartTimeout)
	defer cancel()
	cluster, err := devcluster.Start(ctx, f.cfg)
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
	}{c.Endpoints(), c.Members()}, func(w io.Writer) {
		rows := []string{"MEMBER\tID\tCLIENT URL\tPEER URL\tDATA"}
		for _, m := range c.Members() {
			rows = append(rows, strings.Join([]string{m.Name, m.ID, m.ClientURL, m.PeerURL, m.DataDir}, "\t"))
		}
		table(w, rows...)
		_, _ = fmt.Fprintf(w, "\nRunning until Ctrl-C. For the other terminals:\n\nexport ELDEST_ENDPOINTS=%s\n", strings.Join(c.Endpoints(), ","))
	})
}

// newEtcdMemberCmd returns a hidden command: programs use it to start members one by one and to
// control them over stdin and stdout, see internal/memberproc.
func newEtcdMemberCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "member FILE",
		Short:  "Run one member, controlled by stdin and stdout",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return memberproc.Run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
