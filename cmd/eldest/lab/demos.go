package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/demo"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// exitInterrupted is the exit code that shells report for a program that SIGINT ended: an
// interrupted run has judged nothing, so it must not report success.
const exitInterrupted = 130

// runDemo runs a demo until it ends or a signal comes, and turns its error into an exit code. It
// sets the executable and the output in cfg.
func runDemo(cmd *cobra.Command, cfg *scenario.Config, run func(context.Context) error) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	// If the reader of the output ends, the demo ends as it does for a signal.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	out := cmd.OutOrStdout()
	cfg.Executable, cfg.Out, cfg.JSON, cfg.Style = executable, out, cli.WantsJSON(cmd), story.StyleOf(out, os.Getenv)
	switch err = run(cmd.Context()); {
	case errors.Is(err, scenario.ErrInvalid):
		return cli.Exit(cli.ExitUsage, err)
	case err != nil && cmd.Context().Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case errors.Is(err, scenario.ErrViolated):
		return cli.Exit(cli.ExitFailed, nil)
	}
	return err
}

func newDemoCmd() *cobra.Command {
	var cfg demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate the protocol on a temporary cluster, and check it",
		Long: `Starts an etcd cluster and candidates, each in its own process, and prints what they do.
A leader resigns, a waiting candidate withdraws, a leader is killed, then one with
heartbeats, a leader's key is deleted by an operator, a leader's etcd member is
partitioned; new candidates replace those that left. At the end it prints the results of
its checks of the candidates' reports: that one led at a time, that tokens increased,
that wins followed the queue, how long each hand-over took, that an observer agreed and
that writes with old tokens were refused.

With the default flags it takes about half a minute. --duration repeats the steps
until that time is over: a step that has begun is completed, and no step begins
afterwards.

Ctrl-C (or SIGTERM) ends it at once; no process and no file remains. A second signal
kills it.
--json writes each fact as one JSON object a line, the summary last. NO_COLOR is
supported.

Exit codes: 0 all checks passed; 1 a check failed, or an error; 2 bad usage; 130
interrupted, nothing was checked.`,
		Example: `  eldest demo
  eldest demo --members 5 --candidates 10 --ttl 2s
  eldest demo --duration 10m --json | jq 'select(.event == "summary")'`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Positive(cmd.Flags(), "duration"); err != nil {
				return err
			}
			return runDemo(cmd, &cfg.Config, func(ctx context.Context) error { return demo.Run(ctx, cfg) })
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.Members, "members", demo.DefaultMembers, "members of the etcd cluster: 1, 3 or 5; with 1 nothing is partitioned")
	fl.IntVar(&cfg.Candidates, "candidates", demo.DefaultCandidates, "number of candidates at a time, 3 or more")
	cli.TTLVar(fl, &cfg.TTL, demo.DefaultTTL, "time to live of their leases, 2s or more; a killed leader is replaced after that")
	fl.DurationVar(&cfg.Heartbeat, "heartbeat", demo.DefaultHeartbeat, "timeout of the two candidates of a round that have heartbeats, 500ms or more and less than --ttl")
	fl.DurationVar(&cfg.Duration, "duration", 0, "repeat the steps until this is over (default: each step once)")
	return cmd
}

func newServiceCmd(node *cobra.Command) *cobra.Command {
	var cfg service.Config
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Show a leader-elected service under faults, and audit it",
		Long: `Starts an etcd cluster of three members and three nodes of a key-value service, each
in its own process with its own member. One node leads and answers; the others forward
calls to it. A client that does not know the leader calls nodes at random, all the time,
while the leader is asked to stop, a leader is killed, one is suspended and continues
when another leads, a leader's member is partitioned, and a follower's member.

At the end an audit compares the answers that the client received with all changes in
etcd: no acknowledged write is lost, no attempt is applied twice, nothing is written by a
deposed leader, no read is stale, no write precedes its request; and each fault took
effect. A run whose faults took no effect fails too.

With the default flags it takes less than half a minute. --rounds repeats the steps. The
client's requests are drawn from --seed; their timing is not repeated.

Ctrl-C (or SIGTERM) ends it at once; no process and no file remains. A second signal
kills it. --json writes each fact and each request as one JSON object a line, the summary
last. NO_COLOR is supported.

"eldest service node" runs one such node on your own cluster.

Exit codes: 0 all checks passed; 1 a check failed, or an error; 2 bad usage; 130
interrupted, nothing was checked.`,
		Example: `  eldest service
  eldest service --ttl 2s --rounds 5
  eldest service --seed 42 --json | jq 'select(.event == "summary")'`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				cfg.Seed = rand.Uint64N(1_000_000)
			}
			return runDemo(cmd, &cfg.Config, func(ctx context.Context) error { return service.Run(ctx, cfg) })
		},
	}
	fl := cmd.Flags()
	cli.TTLVar(fl, &cfg.TTL, service.DefaultTTL, "time to live of the nodes' leases, 2s or more; a killed leader is replaced after that")
	fl.IntVar(&cfg.Rounds, "rounds", service.DefaultRounds, "number of times that the steps run")
	fl.Uint64Var(&cfg.Seed, "seed", 0, "seed of the client's requests (default: random, and printed)")
	cmd.AddCommand(node)
	return cmd
}
