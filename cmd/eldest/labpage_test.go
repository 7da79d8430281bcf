package main

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// The page of an existing cluster can evict a candidate only with --write. Labs with a cluster of
// their own are tested in package plays, with the real binary.
func TestLabOfACluster(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	candidate, _ := etcd.campaign("leader", "svc", "me")
	shows := func(more ...string) (*clitest.Process, *clitest.Browser, object) {
		p := etcd.start(append([]string{"lab", "--json", "--endpoints", etcd.endpoint}, more...)...)
		b := clitest.Visit(t, p, "cluster")
		place := b.Queue(1)[0]
		require.Equal(t, "me", place["value"])
		return p, b, object{"do": "evict", "election": "svc", "key": place["key"], "token": place["create"]}
	}
	p, b, evict := shows()
	code, body := b.Do(evict)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, body, "--write")
	p.Signal(syscall.SIGINT)
	p.Exits(cli.ExitOK)
	require.Len(t, etcd.candidates(), 1)

	p, b, evict = shows("svc", "--write")
	code, body = b.Do(evict)
	require.Equal(t, http.StatusOK, code, body)
	candidate.Event("lost")
	candidate.Exits(cli.ExitLost)
	p.Signal(syscall.SIGTERM)
	p.Exits(cli.ExitOK)

	// It ends by itself, also while etcd does not answer.
	p = etcd.start("lab", "--endpoints", "127.0.0.1:1", "--for", "100ms")
	require.Contains(t, p.Line(), "The page is at http://127.0.0.1:")
	require.Contains(t, p.Line(), "The cluster is only read.")
	p.Exits(cli.ExitOK)
}
