package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
)

func parse[T any](t *testing.T, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func TestNobody(t *testing.T) {
	startEtcdProcess(t, "0")
	for line, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"leader svc":              {exitNobody, "", "eldest leader: nobody leads svc\n"},
		"leader svc --json":       {exitNobody, "", "eldest leader: nobody leads svc\n"},
		"list svc":                {exitOK, "KEY   LEASE   TOKEN   TTL   ASKS   VALUE\n", ""},
		"list svc --json":         {exitOK, "[]\n", ""},
		"resign svc --yes":        {exitNobody, "", "eldest resign: nobody leads svc: the queue is empty, there is nothing to remove\n"},
		"resign svc svc/1f --yes": {exitNobody, "", "eldest resign: nobody leads svc: the queue is empty, there is nothing to remove\n"},
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Equal(t, want.code, code, stderr)
			require.Equal(t, want.stdout, stdout)
			require.Equal(t, want.stderr, stderr)
		})
	}
}

func TestLeaderListAndResign(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, first := leading(t, "svc", "A", "--ttl", "30s")
	b, second := waiting(t, "svc", "B\xfe", "--ttl", "30s")
	c, third := waiting(t, "svc", "C", "--ttl", "30s")

	code, stdout, _ := runLine(t, "leader", "svc", "--json")
	require.Equal(t, exitOK, code)
	leader := parse[object](t, stdout)
	require.Equal(t, "svc", leader["election"])
	require.Equal(t, "A", leader["value"])
	for _, field := range []string{"key", "lease", "token"} {
		require.Equal(t, first[field], leader[field], field)
	}
	code, stdout, _ = runLine(t, "leader", "svc")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^KEY +LEASE +TOKEN +VALUE\nsvc/\S+ +\S+ +\d+ +A\n$`, stdout)

	code, stdout, _ = runLine(t, "list", "svc", "--json")
	require.Equal(t, exitOK, code)
	rows := parse[[]object](t, stdout)
	require.Len(t, rows, 3)
	for i, want := range []object{first, second, third} {
		for _, field := range []string{"key", "lease", "token"} {
			require.Equal(t, want[field], rows[i][field], field)
		}
		require.InDelta(t, 20, rows[i]["ttl_seconds"], 10)
	}
	require.Equal(t, "Qv4=", rows[1]["value_base64"])
	code, stdout, _ = runLine(t, "list", "svc")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^KEY +LEASE +TOKEN +TTL +ASKS +VALUE\n(svc/\S+ +\S+ +\d+ +\d+s +(yes|no) +\S+\n){3}$`, stdout)
	require.Contains(t, stdout, `"B\xfe"`)

	// A waiter by its lease, then by its key; the leader stays.
	code, stdout, stderr := runLine(t, "resign", "svc", strings.ToUpper(second["lease"].(string)), "--yes")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, "removed "+second["key"].(string)+"\n", stdout)
	require.Contains(t, stderr, "candidate number 2 of svc")
	require.Contains(t, stderr, "The leader stays.")
	b.event("lost")
	b.exits(exitLost)
	c.event("waiting")
	code, _, stderr = runLine(t, "resign", "svc", second["key"].(string), "--yes")
	require.Equal(t, exitNobody, code)
	require.Contains(t, stderr, "is not in the queue of svc")

	// The leader, for programs.
	code, stdout, stderr = runLine(t, "resign", "svc", "--yes", "--json")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "the leader of svc")
	require.Contains(t, stderr, "After that "+third["key"].(string)+" leads.")
	result := parse[object](t, stdout)
	require.Equal(t, object{
		"election": "svc", "key": first["key"], "lease": first["lease"], "token": first["token"],
		"led": true, "removed": true, "next": third["key"],
	}, result)
	a.event("lost")
	a.exits(exitLost)
	c.event("leader")
	code, _, stderr = runLine(t, "resign", "svc", third["key"].(string), "--yes")
	require.Equal(t, exitOK, code)
	require.Contains(t, stderr, "After that nobody leads")
	c.event("lost")
	c.exits(exitLost)
	require.Empty(t, etcd.keys())
}

// Between the question and the answer the queue moves on.
func TestResignRemovesOnlyTheLifeThatWasShown(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	ctx := bounded(t)
	_, err := etcd.client.Put(ctx, "svc/1f", "before")
	require.NoError(t, err)
	plan, err := planRemoval(ctx, etcd.client, "svc", "", "")
	require.NoError(t, err)

	etcd.delete("svc/1f")
	code, err := exitCode(plan.carryOut(ctx, etcd.client), true)
	require.Equal(t, exitNobody, code)
	require.ErrorContains(t, err, "had left")

	_, err = etcd.client.Put(ctx, "svc/1f", "after")
	require.NoError(t, err)
	code, err = exitCode(plan.carryOut(ctx, etcd.client), true)
	require.Equal(t, exitFailed, code)
	require.ErrorContains(t, err, "was replaced meanwhile")
	require.Equal(t, []string{"svc/1f"}, etcd.keys())
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{
		"y\n": nil, "YES \n": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yesterday\n": errDeclined,
	} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader(answer))
		var asked strings.Builder
		cmd.SetErr(&asked)
		require.Equal(t, want, confirm(cmd), "%q", answer)
		require.Equal(t, "Go on? [y/N] ", asked.String())
	}
}

func TestCommandsThatAskOnceEndWhenEtcdIsAway(t *testing.T) {
	endpoints := "127.0.0.1:" + freePort(t) + ",http://127.0.0.1:" + freePort(t)
	t.Setenv("ELDEST_COMMAND_TIMEOUT", "10m")
	for _, line := range []string{"leader svc", "list svc", "resign svc --yes", "leader svc --user name:password"} {
		t.Run(line, func(t *testing.T) {
			began := time.Now()
			code, stdout, stderr := runLine(t, append(strings.Fields(line), "--command-timeout", "2s", "--endpoints", endpoints)...)
			require.Equal(t, exitFailed, code)
			require.Empty(t, stdout)
			require.Less(t, time.Since(began), time.Minute, "the flag means nothing")
			for _, part := range []string{endpoints, "refused", "--endpoints", "--cacert"} {
				require.Contains(t, stderr, part)
			}
		})
	}
}

// Nothing is refused here; there is just no answer.
func TestCommandsThatAskOnceEndWhenEtcdIsSilent(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	t.Setenv("ELDEST_COMMAND_TIMEOUT", "10m")
	etcd.halt()
	for _, line := range []string{"leader svc", "list svc --json", "resign svc --yes"} {
		began := time.Now()
		code, stdout, stderr := runLine(t, append(strings.Fields(line), "--command-timeout", "200ms")...)
		require.Equal(t, exitFailed, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "no answer from etcd at "+etcd.endpoint)
		require.Less(t, time.Since(began), time.Minute, "the flag means nothing")
	}
}

// The removal was sent and the answer did not come: the user is not told that
// nothing was done.
func TestResignAdmitsThatItDoesNotKnow(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	_, err := etcd.client.Put(bounded(t), "svc/1f", "")
	require.NoError(t, err)
	conn, err := resolved(t, "--endpoints", etcd.endpoint)
	require.NoError(t, err)
	plan, err := planRemoval(bounded(t), etcd.client, "svc", "", "")
	require.NoError(t, err)
	etcd.halt()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = plan.remove(ctx, etcd.client, conn)
	require.ErrorContains(t, err, "may have been removed")
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                         "plain",
		"with space, Grüße, 世界":         "with space, Grüße, 世界",
		"":                              "",
		" padded":                       `" padded"`,
		`"quoted"`:                      `"\"quoted\""`,
		"\x1b[2J":                       `"\x1b[2J"`,
		"tab\tline\n":                   `"tab\tline\n"`,
		"\xff":                          `"\xff"`,
		"left\u202eright":               `"left\u202eright"`,
		"zero\u200bwidth":               `"zero\u200bwidth"`,
		strings.Repeat("é", 1000):       strings.Repeat("é", maxShown/2) + "...",
		"x" + strings.Repeat("é", 1000): "x" + strings.Repeat("é", maxShown/2-1) + "...",
	} {
		require.Equal(t, want, printable(text))
	}
}

func TestObserveEvents(t *testing.T) {
	led := func(token eldest.Token, mod int64) eldest.State {
		return eldest.State{Kind: eldest.Led, Leader: eldest.Leader{Token: token, ModRevision: mod}, Revision: mod}
	}
	nobody, unknown := eldest.State{Kind: eldest.Nobody}, eldest.State{}
	events := observeEvents{trouble: func() string { return "" }}
	for i, step := range []struct {
		state eldest.State
		want  string
	}{
		{unknown, "unknown"}, {unknown, ""}, {nobody, "nobody"}, {led(1, 1), "leader"}, {led(1, 2), "value"},
		{led(1, 2), ""}, {led(3, 3), "leader"}, {unknown, "unknown"}, {led(3, 3), "leader"}, {nobody, "nobody"}, {nobody, ""},
	} {
		event, told := events.next(step.state)
		require.Equal(t, step.want != "", told, "step %d", i)
		if told {
			require.Equal(t, step.want, event.Event, "step %d", i)
		}
	}
}
