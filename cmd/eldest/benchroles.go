package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/benchsite"
)

// benchCommand is the executable of which a benchmark's processes are made: this one.
type benchCommand string

// command is the command of a process; newBenchRoleCmds is its other end.
func (c benchCommand) command(role benchsite.Role, args ...string) *exec.Cmd {
	return exec.Command(string(c), append([]string{"bench", string(role)}, args...)...)
}

// newBenchRoleCmds are hidden: what the processes are called with.
func newBenchRoleCmds() []*cobra.Command {
	hidden := func(role benchsite.Role, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
		return &cobra.Command{Use: string(role), Short: short, Hidden: true, Args: args, RunE: run}
	}
	return []*cobra.Command{
		hidden(benchsite.Member, "Run one member of a benchmark's cluster", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return benchsite.RunMember(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		}),
		hidden(benchsite.Worker, "Host candidates and observers of a benchmark", cobra.NoArgs, runBenchWorker),
		hidden(benchsite.Janitor, "Remove the data of a benchmark's cluster", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return benchsite.RunJanitor(args[0], cmd.InOrStdin())
		}),
	}
}

// benchAccess is how a worker reaches the cluster. It goes through a pipe: of a command
// line everybody could read the password.
type benchAccess struct {
	Endpoints   []string      `json:"endpoints"`
	CACert      string        `json:"cacert,omitempty"`
	Cert        string        `json:"cert,omitempty"`
	Key         string        `json:"key,omitempty"`
	SkipVerify  bool          `json:"skip_verify,omitempty"`
	User        string        `json:"user,omitempty"`
	Password    string        `json:"password,omitempty"`
	DialTimeout time.Duration `json:"dial_timeout"`
}

// access is the other end of benchAccess.flags.
func (f *connFlags) access() benchAccess {
	return benchAccess{
		Endpoints: f.endpoints, CACert: f.cacert, Cert: f.cert, Key: f.key, SkipVerify: f.skipVerify,
		User: f.user, Password: f.password, DialTimeout: f.dialTimeout,
	}
}

func (a benchAccess) flags() *connFlags {
	return &connFlags{
		endpoints: a.Endpoints, cacert: a.CACert, cert: a.Cert, key: a.Key, skipVerify: a.SkipVerify,
		user: a.User, password: a.Password, dialTimeout: a.DialTimeout, resolved: true,
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
	var access benchAccess
	if err := json.Unmarshal(line, &access); err != nil {
		return fmt.Errorf("how to reach the cluster: %w", err)
	}
	cfg, err := access.flags().config()
	if err != nil {
		return err
	}
	return bench.Work(cmd.Context(), bench.Site{Client: *cfg}, in, cmd.OutOrStdout())
}
