package lab

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/bench/contender"
)

// newBenchWorkerCmd is hidden: what the processes over which a run is spread are called with.
func newBenchWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Host candidates and observers of a benchmark", Hidden: true, Args: cobra.NoArgs, RunE: runBenchWorker,
	}
}

// runBenchWorker reads how to reach the cluster and hosts what it is told to, until
// stdin ends.
func runBenchWorker(cmd *cobra.Command, _ []string) error {
	in := bufio.NewReader(cmd.InOrStdin())
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading how to reach the cluster: %w", err)
	}
	var access connect.Flags
	if err := json.Unmarshal(line, &access); err != nil {
		return fmt.Errorf("how to reach the cluster: %w", err)
	}
	contender.KeeperWith = line
	cfg, err := access.Config()
	if err != nil {
		return err
	}
	return bench.Work(cmd.Context(), bench.Site{Client: *cfg}, in, cmd.OutOrStdout())
}
