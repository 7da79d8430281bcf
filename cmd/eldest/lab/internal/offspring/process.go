package offspring

import (
	"errors"
	"os/exec"
	"strings"
)

// Code is the exit code, -1 after a signal.
func Code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// Env leaves out what would make a process of ours talk to another etcd, or with
// credentials that ours does not know.
func Env(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "ELDEST_") && !strings.HasPrefix(v, "ETCDCTL_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// LastLine is the last line of what a process wrote: the reason, most often.
func LastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
