package wiretap

import (
	"context"
	"errors"
	"io"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// call is a call that is being relayed.
type call struct {
	*Proxy
	Message // the fields that all its messages share
	method  method
	cancel  context.CancelCauseFunc
}

// anyStream may carry any number of messages in both directions.
var anyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// handle is called by gRPC for each call. It blocks until the call is over.
func (p *Proxy) handle(_ any, client grpc.ServerStream) error {
	ctx, cancel := context.WithCancelCause(client.Context())
	defer cancel(nil)
	from, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return status.Error(codes.Internal, "wiretap: a call without a connection")
	}
	conn, lane, err := from.call(ctx)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	name, _ := grpc.MethodFromServerStream(client)
	c := &call{Proxy: p, method: methodOf(name), cancel: cancel}
	c.Message = Message{Lane: lane, Connection: from.number, Call: p.next(), Method: name, Stream: c.method.stream, RequireLeader: wantsLeader(ctx)}

	etcd, err := conn.NewStream(metadata.NewOutgoingContext(ctx, passed(ctx)), anyStream, name)
	if err != nil {
		return c.end(err)
	}
	p.pumps.Go(func() { c.requests(ctx, client, etcd) })
	return c.end(c.answers(ctx, client, etcd))
}

// wantsLeader reports whether the client requires a leader, as etcd's client does.
func wantsLeader(ctx context.Context) bool {
	values := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataRequireLeaderKey)
	return len(values) > 0 && values[0] == rpctypes.MetadataHasLeader
}

// passed returns the metadata that etcd receives: the client's, without what gRPC sets itself.
func passed(ctx context.Context) metadata.MD {
	in, _ := metadata.FromIncomingContext(ctx)
	out := make(metadata.MD, len(in))
	for key, values := range in {
		switch {
		case strings.HasPrefix(key, ":"), strings.HasPrefix(key, "grpc-"),
			key == "content-type", key == "user-agent", key == "te":
		default:
			out[key] = values
		}
	}
	return out
}

// requests relays what the client sends, until it has sent all or either side has ended.
func (c *call) requests(ctx context.Context, client grpc.ServerStream, etcd grpc.ClientStream) {
	var f rawframe.Frame
	defer f.Free()
	for {
		switch err := client.RecvMsg(&f); {
		case errors.Is(err, io.EOF):
			_ = etcd.CloseSend()
			return
		case err != nil:
			c.cancel(err)
			return
		}
		m := c.Message
		m.Kind, m.Body, m.Size = Request, decode(c.method.request, f.Data), f.Data.Len()
		if !c.pass(ctx, m, c.cancel) || etcd.SendMsg(&f) != nil {
			return
		}
	}
}

// answers relays what etcd sends, and returns how etcd ended the call. The header is sent first and
// alone, because etcd may send it long before a message.
func (c *call) answers(ctx context.Context, client grpc.ServerStream, etcd grpc.ClientStream) error {
	if header, err := etcd.Header(); err == nil && header != nil {
		if err := client.SendHeader(header); err != nil {
			return err
		}
	}
	var f rawframe.Frame
	defer f.Free()
	for {
		if err := etcd.RecvMsg(&f); err != nil {
			client.SetTrailer(etcd.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return torn(ctx, err)
		}
		m := c.Message
		m.Kind, m.Body, m.Size = Answer, decode(c.method.answer, f.Data), f.Data.Len()
		if !c.pass(ctx, m, c.cancel) {
			return torn(ctx, status.FromContextError(ctx.Err()).Err())
		}
		if err := client.SendMsg(&f); err != nil {
			return err
		}
	}
}

// torn returns the error of a call that Mend ended, and err for a call that etcd or the client
// ended.
func torn(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTorn) {
		return status.Error(codes.Unavailable, cause.Error())
	}
	return err
}

// end records how a call ended, and returns its error.
func (c *call) end(err error) error {
	if err == nil && !c.Stream {
		return nil
	}
	m := c.Message
	m.Kind, m.Status = End, status.Convert(err)
	c.record(m)
	return err
}
