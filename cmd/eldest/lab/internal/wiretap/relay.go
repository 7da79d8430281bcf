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
	"google.golang.org/protobuf/reflect/protoreflect"

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
	from := ctx.Value(connectionKey{}).(*connection)
	conn, lane, err := from.call(ctx)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	name, _ := grpc.MethodFromServerStream(client)
	c := &call{Proxy: p, method: methodOf(name), cancel: cancel}
	c.Message = Message{Lane: lane, Connection: from.number, Call: p.next(), Method: name, Stream: c.method.stream, RequireLeader: wantsLeader(ctx)}

	etcd, err := conn.NewStream(metadata.NewOutgoingContext(ctx, passed(ctx)), anyStream, name)
	if err != nil {
		return c.end(ctx, err)
	}
	p.pumps.Go(func() { c.requests(ctx, client, etcd) })
	return c.answers(ctx, client, etcd)
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

// ahead is how many messages of one direction of a stream are received before the first of them was
// passed on.
const ahead = 256

// side is the stream between the proxy and one side of a call.
type side interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// arrival is a message that was received and recorded.
type arrival struct {
	Message
	frame rawframe.Frame
	err   error // only of an End
}

// receive receives what one side sends in a call, and records it, until receiving fails: over is
// called with the error, and returns what is the last arrival. The caller must take all arrivals.
//
// It does not wait until a message was passed on before it receives the next one: the gate may hold
// it, and the next one is sent all the same.
func (c *call) receive(ctx context.Context, from side, kind Kind, t protoreflect.MessageType, over func(error) *arrival) <-chan *arrival {
	limit := 1
	if c.Stream {
		limit = ahead
	}
	arrivals := make(chan *arrival, limit)
	c.pumps.Go(func() {
		defer close(arrivals)
		for {
			a := &arrival{Message: c.Message}
			if err := from.RecvMsg(&a.frame); err != nil {
				if a = over(err); a != nil {
					arrivals <- a
				}
				return
			}
			if ctx.Err() != nil { // nobody waits for it
				a.frame.Free()
				continue
			}
			a.Kind, a.Body, a.Size = kind, decode(t, a.frame.Data), a.frame.Data.Len()
			if a.Message = c.record(a.Message); !a.Lost {
				arrivals <- a
				continue
			}
			// All that follows it is lost as well.
			a.frame.Free()
			<-ctx.Done()
		}
	})
	return arrivals
}

// passOn passes a message on, unless the gate drops it or the call has ended.
func (c *call) passOn(ctx context.Context, a *arrival, to side) error {
	defer a.frame.Free()
	if !c.admit(ctx, a.Message, c.cancel) || ctx.Err() != nil {
		return nil
	}
	return to.SendMsg(&a.frame)
}

// requests relays what the client sends, until it has sent all or either side has ended.
func (c *call) requests(ctx context.Context, client grpc.ServerStream, etcd grpc.ClientStream) {
	all := false // the client has sent all
	arrivals := c.receive(ctx, client, Request, c.method.request, func(err error) *arrival {
		if all = errors.Is(err, io.EOF); !all {
			c.cancel(err)
		}
		return nil
	})
	for a := range arrivals {
		_ = c.passOn(ctx, a, etcd) // an error means that the call ends, and answers returns how
	}
	if all && ctx.Err() == nil {
		_ = etcd.CloseSend()
	}
}

// answers relays what etcd sends, and returns how the call ended. The header is sent first and
// alone, because etcd may send it long before a message.
func (c *call) answers(ctx context.Context, client grpc.ServerStream, etcd grpc.ClientStream) error {
	var failed error // sending to the client
	fails := func(err error) {
		if err != nil && failed == nil {
			failed = err
			c.cancel(err)
		}
	}
	if header, err := etcd.Header(); err == nil && header != nil {
		fails(client.SendHeader(header))
	}
	arrivals := c.receive(ctx, etcd, Answer, c.method.answer, func(err error) *arrival {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return c.ended(outcome(ctx, err))
	})
	for a := range arrivals {
		if a.Kind != End {
			fails(c.passOn(ctx, a, client))
			continue
		}
		client.SetTrailer(etcd.Trailer())
		return c.finish(ctx, a)
	}
	client.SetTrailer(etcd.Trailer())
	return c.end(ctx, outcome(ctx, failed)) // etcd has ended it without an error
}

// outcome returns the error of a call that the gate ended, and err for a call that etcd or the client
// ended.
func outcome(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDropped) {
		return status.Error(codes.Unavailable, errDropped.Error())
	}
	return err
}

// end records how a call ended, and returns its error.
func (c *call) end(ctx context.Context, err error) error {
	if a := c.ended(err); a != nil {
		return c.finish(ctx, a)
	}
	return nil
}

// ended records how a call ended; nil if that is not recorded.
func (c *call) ended(err error) *arrival {
	if err == nil && !c.Stream {
		return nil
	}
	a := &arrival{Message: c.Message, err: err}
	a.Kind, a.Status = End, status.Convert(err)
	a.Message = c.record(a.Message)
	return a
}

// finish returns the error of a call that has ended. The gate may hold that back: an error of etcd is
// an answer as well.
func (c *call) finish(ctx context.Context, end *arrival) error {
	c.admit(ctx, end.Message, c.cancel)
	return outcome(ctx, end.err)
}
