package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// The environment variables of a program that "eldest run" runs. None of them is the variable of a
// connection flag: ELDEST_KEY is the file of --key everywhere.
const (
	envElection = "ELDEST_ELECTION"
	envKey      = "ELDEST_CANDIDATE_KEY"
	envToken    = "ELDEST_TOKEN"
	envDeadline = "ELDEST_DEADLINE"
	envCause    = "ELDEST_CAUSE"
	envExitCode = "ELDEST_EXIT_CODE"
	envPID      = "ELDEST_PID"
	envStatusFD = "ELDEST_STATUS_FD"
)

// tenureEnv is the environment of processes that belong to a candidate: that of this process, without
// the variables that an enclosing "eldest run" has set, and those of the candidate.
func tenureEnv(election, key string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{envElection, envKey, envToken, envDeadline, envCause, envExitCode, envPID, envStatusFD}, name)
	})
	return append(env, envElection+"="+election, envKey+"="+key)
}

func ofToken(token eldest.Token) string {
	return envToken + "=" + strconv.FormatInt(int64(token), 10)
}

// untilWhen returns the variable with the time until which leadership is certain. The clock is read
// before left is called, so that the sum is never too late if this process is stopped in between.
func untilWhen(left func() time.Duration) string {
	now := time.Now()
	return envDeadline + "=" + now.Add(left()).Format(time.RFC3339Nano)
}

// statusEnv is what the environment of a program of --standby has.
func statusEnv() []string { return []string{envStatusFD + "=" + strconv.Itoa(job.MessagesFD)} }
