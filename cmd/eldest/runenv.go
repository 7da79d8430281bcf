package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest"
)

// What a program that "eldest run" runs finds in its environment. The names are those of
// the contract; that of the candidate's key is also the one from which a TLS key is read
// elsewhere (see variableOf).
const (
	envElection = "ELDEST_ELECTION"
	envKey      = "ELDEST_KEY"
	envToken    = "ELDEST_TOKEN"
	envDeadline = "ELDEST_DEADLINE"
	envCause    = "ELDEST_CAUSE"
	envExitCode = "ELDEST_EXIT_CODE"
	envPID      = "ELDEST_PID"
	envTLSKey   = "ELDEST_TLS_KEY"
)

// variableOf is the environment variable of a connection flag. Within "eldest run",
// ELDEST_KEY is the candidate's key, which is no file; the TLS key that it hides is in
// ELDEST_TLS_KEY.
func variableOf(prefix, flag string) string {
	name := prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if name == envKey && os.Getenv(envToken) != "" {
		return envTLSKey
	}
	return name
}

// tenureEnv is the environment of processes that belong to a tenure: ours, without what
// an "eldest run" around us has set, and the tenure's.
func tenureEnv(election, key string, token eldest.Token) []string {
	var env []string
	tlsKey := os.Getenv(variableOf("ELDEST_", "key"))
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case envElection, envKey, envToken, envDeadline, envCause, envExitCode, envPID, envTLSKey:
		default:
			env = append(env, v)
		}
	}
	if tlsKey != "" {
		env = append(env, envTLSKey+"="+tlsKey)
	}
	return append(env, envElection+"="+election, envKey+"="+key, envToken+"="+strconv.FormatInt(int64(token), 10))
}

// withDeadline adds until when leadership is certain. The clock is read before the time
// that is left, so that the sum is never too late, however long this process stands still.
func withDeadline(env []string, left func() time.Duration) []string {
	now := time.Now()
	return append(env, envDeadline+"="+now.Add(left()).Format(time.RFC3339Nano))
}
