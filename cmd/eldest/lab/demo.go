package lab

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/demo"
)

func newDemoCmd() *cobra.Command {
	var cfg demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole protocol on a cluster of its own, and check it",
		Long: `Starts an etcd cluster and candidates, each a process of its own, and tells what
they do while they do it. A leader resigns, a waiter leaves, a leader is killed, then
one with heartbeats, a leader's key is deleted by an operator, a leader's etcd member is
partitioned; new candidates take the places of those that left. At the end it says what
was checked, on what the candidates themselves reported: that one led at a time, that
tokens rose, that wins followed the queue, how long each hand-over took, that an observer
agreed and that writes with old tokens were refused.

With the default flags it takes about half a minute. --duration repeats the steps
until that time is over: a step that has begun is carried out to its end, and none is
begun afterwards.

Ctrl-C (or SIGTERM) ends it at once; nothing is left running and nothing on disk.
A second one kills it.
--json writes each fact as one JSON object a line, the summary last. NO_COLOR is
honoured.

Exit codes: 0 everything held; 1 something did not, or failed; 2 bad usage; 130
interrupted, nothing was judged.`,
		Example: `  eldest demo
  eldest demo --members 5 --candidates 10 --ttl 2s
  eldest demo --duration 10m --json | jq 'select(.event == "summary")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd, &cfg.Config, func(ctx context.Context) error { return demo.Run(ctx, cfg) })
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.Members, "members", demo.DefaultMembers, "members of the etcd cluster: 1, 3 or 5; with 1 nothing is partitioned")
	fl.IntVar(&cfg.Candidates, "candidates", demo.DefaultCandidates, "how many candidates there are at a time, 3 or more")
	fl.DurationVar(&cfg.TTL, "ttl", demo.DefaultTTL, "time to live of their leases, 2s or more; a killed leader is replaced after that")
	fl.DurationVar(&cfg.Heartbeat, "heartbeat", demo.DefaultHeartbeat, "timeout of the two candidates of a round that have heartbeats, 500ms or more and less than --ttl")
	fl.DurationVar(&cfg.Duration, "duration", 0, "repeat the steps until this is over (default: each step once)")
	return cmd
}
