//go:build linux

package main

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// runs starts "eldest run" with a witness; the long lease keeps a busy machine out of it.
func runs(t *testing.T, d diary, name string, flags []string, how ...string) *running {
	t.Helper()
	return startRun(t, slices.Concat([]string{"svc", "--ttl", "30s", "--value", name}, flags, []string{"--"}, d.program(name, how...))...)
}

func TestRunHandsOverWhenNothingOfTheProgramRuns(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	a := runs(t, diary, "a", []string{"--grace", "15s", "--restart", "on-failure", "--on-loss", `echo "$ELDEST_CAUSE"`}, parent)
	led := a.event("leader")
	diary.lives("a")
	b := runs(t, diary, "b", []string{"--grace", "0s"}, stubborn)
	second := b.event("waiting")
	partakes(t, "svc", 2)

	code, _, stderr := runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	won := b.event("leader")
	require.Equal(t, second["token"], won["token"])
	require.Equal(t, led["token"], a.event("retired")["token"])
	require.Contains(t, a.event("stopping")["cause"], "handed over")
	require.EqualValues(t, 0, a.event("exited")["exit_code"])
	resigned := a.event("resigned")
	require.Equal(t, true, resigned["led"])
	require.Contains(t, resigned["cause"], second["key"])
	require.Contains(t, a.line(), "handed over")
	require.Contains(t, a.event("restarting")["cause"], "handed over")
	diary.lives("b")
	diary.inTurn("a", "b", at(t, won))
	require.True(t, diary.told("a", syscall.SIGTERM))

	// The other way round it ends: it does not restart. The program is not asked, either.
	third := a.event("waiting")
	partakes(t, "svc", 2)
	code, _, stderr = runLine(t, "transfer", "svc", "--to", third["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	b.event("retired")
	require.Contains(t, b.event("exited")["cause"], "killed")
	b.event("resigned")
	b.exits(exitOK)
	require.False(t, diary.told("b", syscall.SIGTERM))
	a.event("leader")
	a.event("started")
	a.signal(syscall.SIGTERM)
	a.event("resigned")
	a.over()
	diary.nobody("svc")
	require.Empty(t, etcd.keys())
}

// A program that is told to end because leadership is handed over is killed at once when
// the key is taken: another one leads already.
func TestRunLosesTheKeyWhileItHandsOver(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	a := startRun(t, slices.Concat([]string{"svc", "--ttl", "200s", "--grace", "100s", "--"}, diary.program("a", stubborn))...)
	led := a.event("leader")
	diary.lives("a")
	_, second := waiting(t, "svc", "B", "--ttl", "30s")
	partakes(t, "svc", 2)
	transfer := start(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	a.event("stopping")
	diary.heard("a", syscall.SIGTERM)
	etcd.delete(led["key"].(string))
	require.Contains(t, a.event("exited")["cause"], "killed", "within less than the grace")
	a.exits(exitOK)
	require.Contains(t, transfer.line(), "retired")
	require.Contains(t, transfer.line(), second["key"])
	transfer.exits(exitOK)
	diary.nobody("svc")
}
