//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/lease"
)

// objects are the lines, each of which must be an object with an event.
func objects(t *testing.T, text string) (all []object) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o object
		require.NoError(t, json.Unmarshal([]byte(line), &o), "a line that is no object: %q", line)
		require.NotEmpty(t, o["event"], line)
		all = append(all, o)
	}
	return all
}

func newTestEvents(out *clitest.Sheet, asJSON bool) *runEvents {
	return newRunEvents(out, asJSON, "eldest run", "svc", func(err error) string { return err.Error() })
}

// Beside the rounds there is no key, no token and no lease: they are left out, and not 0.
func TestRunEventsOfTheCommandItself(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		var out clitest.Sheet
		e := newTestEvents(&out, asJSON)
		e.stand("svc/1", 1)
		e.tell(campaignEvent{Event: "leader", Token: 7})
		e.because("the keeper is gone")
		e.tell(campaignEvent{Event: "resigned"})
		e.stand("", 0)
		e.restarting("exit code 3", 1500*time.Millisecond)
		e.note("waiting for etcd")
		left := e.failed(errors.New("it did not work"))
		e.Close(patience)
		text := out.String()
		require.Contains(t, text, "the keeper is gone", "why it was given up")
		if !asJSON {
			require.NotContains(t, text, "token 0")
			require.Contains(t, text, "restarting  in 1500 ms  because exit code 3\n")
			require.Contains(t, text, "eldest run: waiting for etcd\n")
			require.EqualError(t, left, "it did not work", "who reads has it from the command's end")
			continue
		}
		all := objects(t, text)
		require.Len(t, all, 5)
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
		code, shown := cli.ExitCode(left, true)
		require.Equal(t, cli.ExitFailed, code)
		require.NoError(t, shown, "it is told already")
	}
}

// A renewal that fails says whose fault it is.
func TestRunEventsOfJeopardy(t *testing.T) {
	var out clitest.Sheet
	e := newTestEvents(&out, true)
	told := e.sessionHooks(func() {})
	told.Jeopardy(lease.JeopardyEvent{Remaining: time.Second, Err: context.DeadlineExceeded})
	told.Jeopardy(lease.JeopardyEvent{Remaining: time.Second, Err: errors.New("the program hangs")})
	e.Close(patience)
	all := objects(t, out.String())
	require.Len(t, all, 2)
	require.Equal(t, "etcd does not answer: context deadline exceeded", all[0]["cause"])
	require.Equal(t, "the program hangs", all[1]["cause"])
}
