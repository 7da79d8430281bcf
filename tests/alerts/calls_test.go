package alerts

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

var listening = regexp.MustCompile(`listening\s+at (\S+)`)

// listens waits until a node of a service reports the address at which it accepts calls.
func (p *participant) listens(t *testing.T) string {
	t.Helper()
	return p.finds(t, listening)
}

// call calls each node until the test ends, with two callers that allow a second for each call, and
// call again after a tenth of one.
func call(t *testing.T, nodes ...*participant) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	var conns []*grpc.ClientConn
	for _, n := range nodes {
		conn, err := grpc.NewClient(n.listens(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		conns = append(conns, conn)
		for caller := range 2 {
			callers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					once, cancel := context.WithTimeout(ctx, time.Second)
					// The metrics show the result.
					_, _ = kvpb.NewKVClient(conn).Put(once, &kvpb.PutRequest{Key: "k", RequestId: fmt.Sprint(n.address, caller, i)})
					cancel()
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	t.Cleanup(func() {
		stop()
		callers.Wait()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
}
