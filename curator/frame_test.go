package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// counted is a buffer pool that has one buffer out for each message that is under way.
type counted struct{ out int }

func (c *counted) Get(n int) *[]byte {
	c.out++
	b := make([]byte, n)
	return &b
}

func (c *counted) Put(*[]byte) { c.out-- }

// tape is a stream that plays messages, and fails at one of its operations: as gRPC
// treats messages and buffers.
type tape struct {
	grpc.ServerStream
	pool     *counted
	messages int  // to receive
	fails    int  // at the n-th operation, from 1; 0: never
	early    bool // before the codec is called
	sent     int
	closed   bool
}

var errTape = errors.New("torn")

func (p *tape) torn() bool {
	p.fails--
	return p.fails == 0
}

func (p *tape) RecvMsg(m any) error {
	if p.torn() {
		return errTape
	}
	if p.messages == 0 {
		return io.EOF
	}
	p.messages--
	data := mem.BufferSlice{mem.NewBuffer(p.pool.Get(4096), p.pool)}
	defer data.Free()
	return rawframe.Codec{}.Unmarshal(data, m)
}

func (p *tape) SendMsg(m any) error {
	torn := p.torn()
	if torn && p.early {
		return errTape
	}
	data, err := rawframe.Codec{}.Marshal(m)
	if err != nil {
		return err
	}
	defer data.Free()
	if torn {
		return errTape
	}
	p.sent++
	return nil
}

func (p *tape) Context() context.Context     { return context.Background() }
func (p *tape) SendHeader(metadata.MD) error { return nil }
func (p *tape) SetHeader(metadata.MD) error  { return nil }
func (p *tape) SetTrailer(metadata.MD)       {}
func (p *tape) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (p *tape) Trailer() metadata.MD         { return hop{token: 7}.served() }
func (p *tape) CloseSend() error             { p.closed = true; return nil }

// Each message's buffers are given back exactly once (twice would panic), wherever a
// pump is torn, before or after gRPC has taken the message.
func TestFramesAreGivenBack(t *testing.T) {
	const messages = 5
	for at := range 2*messages + 3 {
		for _, early := range []bool{false, true} {
			for _, side := range []string{"caller", "leader"} {
				t.Run(fmt.Sprint(at, early, side), func(t *testing.T) {
					pool := &counted{}
					caller := &tape{pool: pool, messages: messages, early: early}
					leader := &tape{pool: pool, messages: messages, early: early}
					if side == "caller" {
						caller.fails = at
					} else {
						leader.fails = at
					}
					cancelled := false
					link := &seat{link: &link{}, share: &share{}}
					said := &replay{ServerStream: caller, lobby: newLobby(1, 1<<20)}
					requests(said.again(), link, leader, func(error) { cancelled = true })
					if at == 0 { // and once more, for the next leader
						requests(said.again(), link, leader, nil)
						require.Equal(t, messages, leader.sent-messages)
						leader.sent = messages
					}
					said.drop()
					require.Zero(t, pool.out, "requests")
					if at == 0 {
						require.True(t, leader.closed)
						require.Equal(t, messages, leader.sent)
					}
					require.Equal(t, side == "caller" && at > 0 && at <= messages+1, cancelled)

					caller.messages, leader.messages = messages, messages
					caller.fails, leader.fails = caller.fails+messages+1, leader.fails+messages+1
					v := &visit{front: &front{}, name: "m", caller: &replay{ServerStream: caller, lobby: newLobby(1, 1<<20)}}
					_ = relay{visit: v, leader: &peer{}, link: link}.answers(v.caller.again(), leader)
					require.Zero(t, pool.out, "answers")
				})
			}
		}
	}
}

// What a handler receives and sends is given back as well, also where it cannot be
// decoded, or comes too late, or one too many.
func TestFramesOfHandlersAreGivenBack(t *testing.T) {
	for _, many := range []bool{false, true} {
		for messages := range 4 {
			for fails := range 4 {
				for _, gone := range []error{nil, errDeposed} {
					pool := &counted{}
					p := &tape{pool: pool, messages: messages, fails: fails}
					c := &call{decoding: decoding{ServerStream: p, codec: codecOf(context.Background()), many: many}}
					_ = c.RecvMsg(&wrapperspb.BytesValue{}) // 4096 zeros are no message
					c.gone = gone
					_ = c.RecvMsg(&wrapperspb.BytesValue{})
					_ = c.SendMsg(wrapperspb.Bytes(make([]byte, 4096)))
					require.Zero(t, pool.out)
				}
			}
		}
	}
}
