package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// written returns the lines of a runner's events; with --json each must be an object.
func written(t *testing.T, asJSON bool, tell func(*runner)) (text string, all []object) {
	t.Helper()
	var out clitest.Sheet
	r := &runner{runOptions: runOptions{candidateFlags: &candidateFlags{conn: &connect.Flags{}}, name: "svc"}}
	r.openEvents(&out, asJSON, "eldest run")
	r.events.begin("svc/1", 1)
	tell(r)
	r.events.Close(patience)
	for line := range strings.Lines(out.String()) {
		if asJSON {
			all = append(all, parse[object](t, line))
		}
	}
	return out.String(), all
}

// A line has the time of the event: the lines of two candidates must not show two leaders because one
// of them was written late.
func TestEventsHaveTheTimeOfTheFact(t *testing.T) {
	fact := time.Now().Add(-time.Hour)
	_, all := written(t, true, func(r *runner) {
		hooks := r.events.candidateHooks(t.Context())
		hooks.Registered(election.RegisteredEvent{Token: 5, At: fact.Add(1)})
		hooks.Waiting(election.WaitingEvent{Token: 5, At: fact.Add(2)})
		hooks.Won(election.WonEvent{Token: 5, At: fact.Add(3)})
		hooks.Ended(election.EndedEvent{Token: 5, Led: true, Cause: eldest.ErrResigned, At: fact.Add(4)})
	})
	for i, event := range []string{"registered", "waiting", "leader", "resigned"} {
		require.Equal(t, event, all[i]["event"])
		require.Equal(t, fact.Add(time.Duration(i+1)).Format(time.RFC3339Nano), all[i]["time"])
	}
}

// Events outside of rounds have no key, no token and no lease: these fields are left out, and not 0.
func TestEventsOfTheCommandItself(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		var left error
		text, all := written(t, asJSON, func(r *runner) {
			r.events.tellAt(time.Now(), 7, event{Event: "leader"})
			r.events.because("the keeper is gone")
			r.events.tell(event{Event: "resigned"})
			r.events.own(event{Event: "restarting", Cause: "exit code 3", InMS: new(int64(1500))})
			r.events.notice("waiting for %s", "etcd")
			left = r.failed(errors.New("it did not work"))
		})
		require.Contains(t, text, "the keeper is gone", "why it was given up")
		if !asJSON {
			require.NotContains(t, text, "token 0")
			require.Contains(t, text, "restarting  in 1500 ms  because exit code 3\n")
			require.Contains(t, text, "eldest run: waiting for etcd\n")
			require.EqualError(t, left, "it did not work", "people have it from the command's end")
			continue
		}
		for i, name := range []string{"leader", "resigned", "restarting", "notice", "failed"} {
			require.Equal(t, name, all[i]["event"])
			require.Equal(t, "svc", all[i]["election"])
			_, err := time.Parse(time.RFC3339Nano, all[i]["time"].(string))
			require.NoError(t, err)
			for _, field := range []string{"key", "token", "lease"} {
				require.Equal(t, i < 2, all[i][field] != nil, "%s of %s", field, name)
			}
		}
		require.EqualValues(t, 1500, all[2]["in_ms"])
		require.Equal(t, "exit code 3", all[2]["cause"])
		require.EqualValues(t, cli.ExitFailed, all[4]["exit_code"])
		require.Equal(t, all[4]["cause"], all[4]["error"])
		code, shown := cli.ExitCode(left, true)
		require.Equal(t, cli.ExitFailed, code)
		require.NoError(t, shown, "it is told already")
	}
}

// The event of a failed renewal names the cause: etcd, or the program.
func TestEventsOfAtRisk(t *testing.T) {
	_, all := written(t, true, func(r *runner) {
		told := r.events.sessionHooks()
		told.AtRisk(lease.AtRiskEvent{Remaining: time.Second, Err: context.DeadlineExceeded})
		told.AtRisk(lease.AtRiskEvent{Remaining: time.Second, Err: errors.New("the program hangs")})
	})
	require.Equal(t, "etcd does not answer: context deadline exceeded", all[0]["cause"])
	require.Equal(t, "the program hangs", all[1]["cause"])
}

// A hook that is called after the round of its candidate has ended writes no line.
func TestLateEvents(t *testing.T) {
	_, all := written(t, true, func(r *runner) {
		r.events.begin("", 0)
		r.events.tellAt(time.Now(), 7, event{Event: "lost"})
		r.events.own(event{Event: "restarting"})
	})
	require.Len(t, all, 1)
	require.Equal(t, "restarting", all[0]["event"])
}
