// Package rawframe lets gRPC move messages as they are on the wire. A proxy that forces Codec on
// its server and on its own calls forwards any method, whatever its codec is, and whether or not
// the proxy was built with that codec.
//
//	server := grpc.NewServer(grpc.ForceServerCodecV2(rawframe.Codec{}), grpc.UnknownServiceHandler(forward))
//
//	var f rawframe.Frame
//	defer f.Free()
//	if err := in.RecvMsg(&f); err != nil { ... }
//	return out.SendMsg(&f)
//
// Nothing is copied: a frame is a reference to buffers of gRPC's pools, and the receiver must send
// it on or free it.
//
// # Not guaranteed
//
// The compressed bytes are not kept: gRPC decompresses a message before the codec gets it. A
// frame is not for more than one goroutine at a time.
package rawframe
