package witness

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// The methods of the streams.
const (
	// AppendStream takes kvpb.AppendRequests, and answers each with its AppendResponse.
	AppendStream = "/eldest.storm.v1.Streams/Append"
	// DeafStream takes no message and sends none until its context ends.
	DeafStream = "/eldest.storm.v1.Streams/Deaf"
)

var streams = grpc.ServiceDesc{
	ServiceName: "eldest.storm.v1.Streams",
	HandlerType: (*kvpb.KVServer)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Append", Handler: appendAll, ServerStreams: true, ClientStreams: true},
		{StreamName: "Deaf", Handler: deaf, ServerStreams: true, ClientStreams: true},
	},
}

func appendAll(srv any, stream grpc.ServerStream) error {
	for {
		var r kvpb.AppendRequest
		if err := stream.RecvMsg(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := srv.(kvpb.KVServer).Append(stream.Context(), &r)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
}

func deaf(_ any, stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}
