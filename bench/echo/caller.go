package echo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A stream has streamBytes of messages in a direction, and at most maxLength messages: enough that
// its opening is a small part of its time.
const (
	streamBytes = 4 << 20
	maxLength   = 1000
)

// StreamLength is how many messages of so many bytes a stream has in a direction.
func StreamLength(size int) int { return min(maxLength, max(1, streamBytes/max(1, size))) }

// Caller is a client with one connection. It makes one call at a time.
type Caller struct {
	conn *grpc.ClientConn
	in   message // the last answer
}

// Close closes the connection.
func (c *Caller) Close() error { return c.conn.Close() }

// Unary makes a unary call with the payload, and blocks until it is answered or ctx ends.
func (c *Caller) Unary(ctx context.Context, payload []byte) error {
	if err := c.conn.Invoke(ctx, "/"+service+"/"+unaryMethod, wrapperspb.Bytes(payload), &c.in); err != nil {
		return err
	}
	return c.check(payload)
}

// ServerStream sends the payload once, and receives a stream of it. It blocks until the stream is at
// its end, or ctx ends.
func (c *Caller) ServerStream(ctx context.Context, payload []byte) error {
	return c.stream(ctx, &serverStream, payload, 1)
}

// Bidi sends a stream of the payload and receives it, both at the same time. It blocks until the
// stream is at its end, or ctx ends.
func (c *Caller) Bidi(ctx context.Context, payload []byte) error {
	return c.stream(ctx, &bidiStream, payload, StreamLength(len(payload)))
}

// stream sends the payload so many times, and receives a stream of it.
func (c *Caller) stream(ctx context.Context, desc *grpc.StreamDesc, payload []byte, times int) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.conn.NewStream(ctx, desc, "/"+service+"/"+desc.StreamName)
	if err != nil {
		cancel()
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		out := wrapperspb.Bytes(payload)
		for range times {
			if stream.SendMsg(out) != nil {
				return // receive returns the reason
			}
		}
		_ = stream.CloseSend()
	}()
	err = c.receive(stream, payload)
	cancel()
	<-sent
	return err
}

// receive receives a whole stream.
func (c *Caller) receive(stream grpc.ClientStream, payload []byte) error {
	for n := 0; ; n++ {
		err := stream.RecvMsg(&c.in)
		switch want := StreamLength(len(payload)); {
		case errors.Is(err, io.EOF) && n == want:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the stream had %d messages, not %d", n, want)
		case err != nil:
			return err
		}
		if err := c.check(payload); err != nil {
			return err
		}
	}
}

// check compares the sizes only: to compare the bytes would cost more than the call.
func (c *Caller) check(payload []byte) error {
	if got := len(c.in.GetValue()); got != len(payload) {
		return fmt.Errorf("the answer has %d bytes, not %d", got, len(payload))
	}
	return nil
}
