//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

// The program of a suspended run is dead, and runs anew when the run leads on with its token.
//
// Fails when the program lives on, when the run stands anew, and when --on-loss is not told.
func TestRunLeadsOnAfterASuspension(t *testing.T) {
	t.Parallel()
	etcd, diary := own(t), newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", long, "--heartbeat", "2s", "--restart", "on-failure", "--on-loss", logTo(diary.path+"-lost", "lost"), "--"},
		diary.program("A", stubborn, parent)...)...)
	won := r.event("leader")
	first := r.pid()
	diary.lives("A-away")
	etcd.halt()
	require.Equal(t, won["token"], r.event("suspended")["token"])
	r.event("exited")
	diary.nobodyOf(t, "A")
	require.Equal(t, "on-loss", r.event("hook")["hook"])
	require.FileExists(t, diary.path+"-lost")
	require.NoError(t, etcd.Member(0).Cont())
	require.Equal(t, won["token"], r.event("resumed")["token"])
	require.NotEqual(t, first, r.pid())
	diary.lives("A-away")
	r.Signal(syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	require.NotContains(t, r.Errors(), "lost\"", "nothing was lost")
	require.Equal(t, 1, strings.Count(r.Errors(), `"event":"registered"`), "it stood anew")
	diary.nobody("svc")
	require.Empty(t, etcd.standing())
}

// A program that is not well costs its run the leadership, and not only a suspension: another one may do
// better.
//
// Fails when the run leads on.
func TestRunThatIsNotWellLeadsNoMore(t *testing.T) {
	t.Parallel()
	etcd, diary := borrowed(t), newDiary(t)
	flags := []string{"svc", "--ttl", long, "--heartbeat", "2s", "--restart", "on-failure"}
	ill := filepath.Join(t.TempDir(), "ill")
	health := []string{"--health", "test ! -e " + ill, "--health-every", "200ms", "--"}
	a := etcd.run(append(append(slices.Clone(flags), health...), diary.program("A", stubborn)...)...)
	won := a.event("leader")
	b := etcd.run(append(append(slices.Clone(flags), "--"), diary.program("B")...)...)
	b.event("waiting")
	diary.lives("A")
	require.NoError(t, os.WriteFile(ill, nil, 0o600))
	next := b.event("leader")
	require.Greater(t, next["token"], won["token"])
	diary.lives("B")
	diary.inTurn("A", "B", timeOf(t, next))
	require.NotContains(t, a.Errors(), `"resumed"`)
	for _, r := range []*running{a, b} {
		r.Signal(syscall.SIGTERM)
		r.Over()
	}
}
