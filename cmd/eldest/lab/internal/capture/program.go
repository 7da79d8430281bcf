package capture

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Program is a program to be traced. Args is required.
type Program struct {
	// Args are its name and arguments, in which {} is replaced by the wiretap's address.
	Args []string
	// In, Out and Err are its standard streams; nil means empty input, or discarded output.
	In       io.Reader
	Out, Err io.Writer
}

// patience is how long a program may take to end after it was interrupted.
const patience = 10 * time.Second

// Run starts a program and blocks until it has ended. When ctx ends the program is interrupted, and
// killed if it does not end. It returns the exit code, or -1 after a signal. The error is one of
// starting the program or opening its streams.
func (c *Capture) Run(ctx context.Context, p Program) (int, error) {
	args := make([]string, len(p.Args))
	for i, a := range p.Args {
		args[i] = strings.ReplaceAll(a, "{}", c.Endpoint())
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = environment(os.Environ(), c.Endpoint())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return -1, err
	}
	// The exit code shows how it ended. Output that could not be copied comes from a grandchild
	// that still holds the streams; that process is no longer traced.
	return cmd.ProcessState.ExitCode(), nil
}

// leaves are the variables, without their prefix, that would make a client connect to another
// address or in a way that the wiretap does not support.
var leaves = []string{"ENDPOINTS", "CACERT", "CERT", "KEY", "INSECURE_SKIP_TLS_VERIFY", "INSECURE_TRANSPORT", "DISCOVERY_SRV", "FOLLOW_MEMBERS"}

func environment(env []string, endpoint string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"ELDEST_", "ETCDCTL_"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && slices.Contains(leaves, rest) {
				return true
			}
		}
		return false
	})
	return append(env, "ELDEST_ENDPOINTS="+endpoint, "ETCDCTL_ENDPOINTS="+endpoint, "ELDEST_FOLLOW_MEMBERS=false")
}
