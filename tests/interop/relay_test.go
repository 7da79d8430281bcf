package interop

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// shortLeases starts a relay in front of etcd that asks for another TTL than its clients, and
// returns its endpoint. etcdctl elect asks for 60 s, which no flag changes.
func shortLeases(t *testing.T, endpoint string, ttl time.Duration) string {
	t.Helper()
	etcd := dial(t, endpoint, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawframe.Codec{})))
	var requests, served sync.WaitGroup
	pings := keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true} // as frequent as etcd permits
	relay := grpc.NewServer(grpc.ForceServerCodecV2(rawframe.Codec{}), grpc.WaitForHandlers(true), grpc.KeepaliveEnforcementPolicy(pings), grpc.UnknownServiceHandler(
		func(_ any, client grpc.ServerStream) error {
			method, _ := grpc.Method(client.Context())
			call, err := etcd.NewStream(client.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
			if err != nil {
				return err
			}
			requests.Go(func() { // until the call ends
				if errors.Is(move(client, call, requested(method, ttl)), io.EOF) {
					_ = call.CloseSend()
				}
			})
			if err := move(call, client, nil); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}))
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served.Go(func() { _ = relay.Serve(lis) })
	t.Cleanup(func() {
		relay.Stop()
		served.Wait()
		requests.Wait()
	})
	return lis.Addr().String()
}

// side is one side of a call.
type side interface {
	RecvMsg(m any) error
	SendMsg(m any) error
}

// move passes messages on until one side has ended, and returns io.EOF at the end of from. change,
// if not nil, changes each message.
func move(from, to side, change func(*rawframe.Frame) error) error {
	for {
		var f rawframe.Frame
		if err := from.RecvMsg(&f); err != nil {
			return err
		}
		if change != nil {
			if err := change(&f); err != nil {
				return err
			}
		}
		if err := to.SendMsg(&f); err != nil {
			f.Free()
			return err
		}
	}
}

// requested changes the TTL of a request for a lease.
func requested(method string, ttl time.Duration) func(*rawframe.Frame) error {
	if method != etcdserverpb.Lease_LeaseGrant_FullMethodName {
		return nil
	}
	return func(f *rawframe.Frame) error {
		var r etcdserverpb.LeaseGrantRequest
		data := f.Take()
		defer data.Free()
		if err := proto.Unmarshal(data.Materialize(), &r); err != nil {
			return err
		}
		r.TTL = int64(ttl.Seconds())
		changed, err := proto.Marshal(&r)
		f.Data = mem.BufferSlice{mem.SliceBuffer(changed)}
		return err
	}
}
