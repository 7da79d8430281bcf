package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
)

func parse[T any](t testing.TB, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// Between the question and the answer the queue moves on.
func TestResignRemovesOnlyTheLifeThatWasShown(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	ctx := bounded(t)
	_, err := etcd.client.Put(ctx, "svc/1f", "before")
	require.NoError(t, err)
	plan, err := planRemoval(ctx, etcd.client, "svc", "", "")
	require.NoError(t, err)

	etcd.delete("svc/1f")
	code, err := cli.ExitCode(plan.carryOut(ctx, etcd.client), true)
	require.Equal(t, cli.ExitNobody, code)
	require.ErrorContains(t, err, "had left")

	_, err = etcd.client.Put(ctx, "svc/1f", "after")
	require.NoError(t, err)
	code, err = cli.ExitCode(plan.carryOut(ctx, etcd.client), true)
	require.Equal(t, cli.ExitFailed, code)
	require.ErrorContains(t, err, "was replaced meanwhile")
	require.Equal(t, []string{"svc/1f"}, etcd.keys())
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{
		"y\n": nil, "YES \n": nil, "n\n": cli.ErrDeclined, "\n": cli.ErrDeclined, "": cli.ErrDeclined, "yesterday\n": cli.ErrDeclined,
	} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader(answer))
		var asked strings.Builder
		cmd.SetErr(&asked)
		require.Equal(t, want, cli.Confirm(cmd), "%q", answer)
		require.Equal(t, "Go on? [y/N] ", asked.String())
	}
}

// The removal was sent and the answer did not come: the user is not told that
// nothing was done.
func TestResignAdmitsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	etcd := own(t)
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
		strings.Repeat("é", 1000):       strings.Repeat("é", cli.MaxShown/2) + "...",
		"x" + strings.Repeat("é", 1000): "x" + strings.Repeat("é", cli.MaxShown/2-1) + "...",
	} {
		require.Equal(t, want, cli.Printable(text))
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
