package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/eldest-io/eldest"
)

// What a program that "eldest run" runs finds in its environment. The names are those of
// the contract; that of the candidate's key is also the one from which a TLS key is read
// elsewhere (see variableOf).
const (
	envElection = "ELDEST_ELECTION"
	envDeadline = "ELDEST_DEADLINE"
	envCause    = "ELDEST_CAUSE"
	envExitCode = "ELDEST_EXIT_CODE"
	envPID      = "ELDEST_PID"
)

// tenureEnv is the environment of processes that belong to a tenure: ours, without what
// an "eldest run" around us has set, and the tenure's.
func tenureEnv(election, key string, token eldest.Token) []string {
	var env []string
	tlsKey := os.Getenv(connect.VariableOf("ELDEST_", "key"))
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case envElection, connect.EnvKey, connect.EnvToken, envDeadline, envCause, envExitCode, envPID, connect.EnvTLSKey:
		default:
			env = append(env, v)
		}
	}
	if tlsKey != "" {
		env = append(env, connect.EnvTLSKey+"="+tlsKey)
	}
	return append(env, envElection+"="+election, connect.EnvKey+"="+key, connect.EnvToken+"="+strconv.FormatInt(int64(token), 10))
}

// withDeadline adds until when leadership is certain. The clock is read before the time
// that is left, so that the sum is never too late, however long this process stands still.
func withDeadline(env []string, left func() time.Duration) []string {
	now := time.Now()
	return append(env, envDeadline+"="+now.Add(left()).Format(time.RFC3339Nano))
}
