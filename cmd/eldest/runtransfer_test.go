//go:build linux

package main

import (
	"slices"
	"syscall"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// runs starts "eldest run" with a witness; the long lease keeps a busy machine out of it.
func (e *etcd) runs(d diary, name string, flags []string, how ...string) *running {
	e.t.Helper()
	return e.run(slices.Concat([]string{"svc", "--ttl", "30s", "--value", name}, flags, []string{"--"}, d.program(name, how...))...)
}

func TestRunHandsOverWhenNothingOfTheProgramRuns(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	a := etcd.runs(diary, "a", []string{"--grace", "15s", "--restart", "on-failure", "--on-loss", `echo "$ELDEST_CAUSE"`}, parent)
	led := a.event("leader")
	diary.lives("a")
	b := etcd.runs(diary, "b", []string{"--grace", "0s"}, stubborn)
	second := b.event("waiting")
	etcd.partakes("svc", 2)

	etcd.does("transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	won := b.event("leader")
	require.Equal(t, second["token"], won["token"])
	require.Equal(t, led["token"], a.event("retired")["token"])
	require.Contains(t, a.event("stopping")["cause"], "handed over")
	require.EqualValues(t, 0, a.event("exited")["exit_code"])
	resigned := a.event("resigned")
	require.Equal(t, true, resigned["led"])
	require.Contains(t, resigned["cause"], second["key"])
	require.Contains(t, a.Line(), "handed over")
	require.Contains(t, a.event("restarting")["cause"], "handed over")
	diary.lives("b")
	diary.inTurn("a", "b", timeOf(t, won))
	require.True(t, diary.told("a", syscall.SIGTERM))

	// The other way round it ends: it does not restart. The program is not asked, either.
	third := a.event("waiting")
	etcd.partakes("svc", 2)
	etcd.does("transfer", "svc", "--to", third["key"].(string), "--patience", patience.String())
	b.event("retired")
	require.Contains(t, b.event("exited")["cause"], "killed")
	b.event("resigned")
	b.Exits(cli.ExitOK)
	require.False(t, diary.told("b", syscall.SIGTERM))
	a.event("leader")
	a.event("started")
	a.Signal(syscall.SIGTERM)
	a.event("resigned")
	a.Over()
	diary.nobody("svc")
	require.Empty(t, etcd.keys())
}

// A program that is told to end because leadership is handed over is killed at once when
// the key is taken: another one leads already.
func TestRunLosesTheKeyWhileItHandsOver(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	a := etcd.run(slices.Concat([]string{"svc", "--ttl", "200s", "--grace", "100s", "--"}, diary.program("a", stubborn))...)
	led := a.event("leader")
	diary.lives("a")
	_, second := etcd.waiting("svc", "B", "--ttl", "30s")
	etcd.partakes("svc", 2)
	transfer := etcd.start("transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	a.event("stopping")
	diary.heard("a", syscall.SIGTERM)
	etcd.delete(led["key"].(string))
	require.Contains(t, a.event("exited")["cause"], "killed", "within less than the grace")
	a.Exits(cli.ExitOK)
	require.Contains(t, transfer.Line(), "retired")
	require.Contains(t, transfer.Line(), second["key"])
	transfer.Exits(cli.ExitOK)
	diary.nobody("svc")
}
