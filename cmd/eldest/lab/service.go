package lab

import (
	"context"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
)

func newServiceCmd(node *cobra.Command) *cobra.Command {
	var cfg service.Config
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Show a leader-elected service under faults, and audit it",
		Long: `Starts an etcd cluster of three members and three nodes of a key-value service, each
a process of its own with a member of its own. One node leads and answers; the others
forward calls to it. A client that does not know the leader calls nodes at random, all
the time, while the leader is told to stop, a leader is killed, one is suspended and goes
on when another leads, a leader's member is partitioned, and a follower's.

At the end an audit compares what the client was told with everything that happened
in etcd: no acknowledged write is lost, no attempt is applied twice, nothing is written
by a leader that was deposed, no read is stale, no write precedes its request; and each
fault really took effect. A run whose faults took no effect fails too.

With the default flags it takes less than half a minute. --rounds repeats the steps, from
the second round on in an order drawn from --seed, and so is what the client asks for;
what the machine does meanwhile is not repeated.

Ctrl-C (or SIGTERM) ends it at once; nothing is left running and nothing on disk. A
second one kills it. --json writes each fact and each request as one JSON object a line,
the summary last. NO_COLOR is honoured.

"eldest service node" is one such node, for a cluster of yours.

Exit codes: 0 everything held; 1 something did not, or failed; 2 bad usage; 130
interrupted, nothing was judged.`,
		Example: `  eldest service
  eldest service --ttl 2s --rounds 5
  eldest service --seed 42 --json | jq 'select(.event == "summary")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				cfg.Seed = rand.Uint64N(1_000_000)
			}
			return runDemo(cmd, &cfg.Config, func(ctx context.Context) error { return service.Run(ctx, cfg) })
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&cfg.TTL, "ttl", service.DefaultTTL, "time to live of the nodes' leases, 2s or more; a killed leader is replaced after that")
	fl.IntVar(&cfg.Rounds, "rounds", service.DefaultRounds, "how often the steps are carried out")
	fl.Uint64Var(&cfg.Seed, "seed", 0, "what the client asks for, and the order of later rounds (default: drawn, and shown)")
	cmd.AddCommand(node)
	return cmd
}
