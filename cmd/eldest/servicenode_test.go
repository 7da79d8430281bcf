package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// The first signal makes a node give up leadership and wait for a request that it still receives,
// for as long as --shutdown. The second one ends that wait.
func TestServiceNodeEndsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	p := etcd.start("service", "node", "shop", "n1", "--json", "--ttl", "60s", "--drain", "30m", "--shutdown", "30m", "--endpoints", etcd.endpoint)
	conn, err := grpc.NewClient(p.Event("listening")["address"].(string), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for o := p.Event("status"); o["role"] != "leading"; o = p.Event("status") {
	}
	stream, err := conn.NewStream(bounded(t), &grpc.StreamDesc{ClientStreams: true}, kvpb.KV_Put_FullMethodName)
	require.NoError(t, err)
	_, err = healthpb.NewHealthClient(conn).Check(bounded(t), &healthpb.HealthCheckRequest{}) // the node has the stream by now
	require.NoError(t, err)

	p.Signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { return etcd.leases() == 0 }, patience, 10*time.Millisecond, "it leads")
	time.Sleep(100 * time.Millisecond)
	select {
	case <-p.Done:
		require.Fail(t, "it has not waited for the request")
	default:
	}
	p.Signal(syscall.SIGINT)
	p.Ends(cli.ExitOK)
	require.Equal(t, codes.Unavailable, status.Code(stream.RecvMsg(&kvpb.PutResponse{})))
}
