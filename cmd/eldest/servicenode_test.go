package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// nodeTTL is one that a busy machine does not let run out.
const nodeTTL = 30 * time.Second

// node starts a node and returns it with the address at which it listens.
func (e *etcd) node(id string, more ...string) (p *clitest.Process, address string) {
	e.t.Helper()
	t := e.t
	p = e.start(append([]string{"service", "node", "shop", id, "--json", "--ttl", nodeTTL.String()}, more...)...)
	listening := p.Event("listening")
	require.Equal(t, "shop", listening["election"])
	require.Equal(t, id, listening["node"])
	return p, listening["address"].(string)
}

// becomes reads statuses up to one with the role.
func becomes(p *clitest.Process, role string) object {
	p.T.Helper()
	for {
		if o := p.Event("status"); o["role"] == role {
			return o
		}
		// Those in between may be skipped, or be told.
	}
}

func TestServiceNodes(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, addressA := etcd.node("a")
	led := becomes(a, "leading")
	b, addressB := etcd.node("b", "--listen", "127.0.0.1:0")
	followed := becomes(b, "following")
	require.Equal(t, led["token"], followed["token"])
	require.Equal(t, "a", followed["leader"])
	require.Equal(t, addressA, followed["leader_address"])

	conn, err := grpc.NewClient(addressB, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	put, err := kvpb.NewKVClient(conn).Put(etcd.bounded(), &kvpb.PutRequest{RequestId: "r", Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	require.EqualValues(t, led["token"], put.GetReceipt().GetToken())

	a.Signal(syscall.SIGTERM)
	becomes(b, "leading")
	require.Contains(t, becomes(a, "neither")["reason"], "signal")
	a.Ends(cli.ExitOK)
	item, err := kvpb.NewKVClient(conn).Get(etcd.bounded(), &kvpb.GetRequest{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, "v", string(item.GetValue()))
	b.Signal(os.Interrupt)
	b.Ends(cli.ExitOK)
	require.Zero(t, etcd.leases())
}

// A reader that goes away ends the node; its key goes with it.
func TestServiceNodeEndsWithItsReader(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	p, _ := etcd.node("a")
	led := becomes(p, "leading")
	require.NoError(t, p.Out.Close())
	etcd.delete(led["key"].(string)) // something to tell
	p.Over()
	require.Equal(t, cli.ExitFailed, p.ProcessState.ExitCode())
	require.Contains(t, p.Errors(), "writing the events")
	require.Zero(t, etcd.leases())
}
