package rig

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Trap waits, inside the process on a host, for its next matching request: at the moment before the
// request is sent, or at the moment after its reply arrived and before any code has received it.
// These are the points at which stopping a process has the greatest effect.
type Trap struct {
	// Match picks the request by its full method and its message; nil for a stream
	// that is being opened.
	Match func(method string, req any) bool
	// After waits for the reply instead of the request. A request that failed does not match: its
	// trap stays.
	After bool
	// Strike is called on the goroutine that makes the request, which continues when Strike
	// returns, even if the request's context has ended meanwhile.
	Strike func()
	// Lose, of a trap After, drops the reply, so the client cannot know that the request was
	// executed. A request then ends with its context, or with the host's connections; a stream
	// continues.
	Lose bool
}

// Set arms a trap.
func (h *Host) Set(t *Trap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traps = append(h.traps, t)
}

// Armed reports whether a trap is armed that has not struck, and that loses no reply.
func (h *Host) Armed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.traps, func(t *Trap) bool { return !t.Lose })
}

// Forget disarms every trap that has not struck yet.
func (h *Host) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traps = nil
}

// step is called by the process's goroutines before and after each request. It reports whether the
// reply is lost.
func (h *Host) step(method string, req any, after bool) (lost bool) {
	h.starve()
	t := h.trapFor(method, req, after)
	if t == nil {
		return false
	}
	t.Strike()
	return t.Lose
}

// unanswered waits for the end of a request whose reply is lost, and returns its error.
func unanswered(ctx context.Context, torn <-chan struct{}) error {
	select {
	case <-torn:
		return status.Error(codes.Unavailable, "the connection was reset")
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// trapFor removes and returns the first armed trap that matches.
func (h *Host) trapFor(method string, req any, after bool) *Trap {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, t := range h.traps {
		if t.After == after && t.Match(method, req) {
			h.traps = append(h.traps[:i:i], h.traps[i+1:]...)
			return t
		}
	}
	return nil
}

// Starve makes the process on the host wait for a processor: before each request and after each
// reply its goroutine waits for up to most, drawn from rng, and no context ends that. Timers
// continue. 0 ends it, also for goroutines that wait.
func (h *Host) Starve(most time.Duration, rng *rand.Rand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hunger, h.dice = most, rng
	if h.fed != nil {
		close(h.fed)
	}
	h.fed = make(chan struct{})
}

// starve waits, if the process on the host starves.
func (h *Host) starve() {
	h.mu.Lock()
	if h.hunger <= 0 {
		h.mu.Unlock()
		return
	}
	d, fed := time.Duration(h.dice.Int64N(int64(h.hunger))), h.fed
	h.mu.Unlock()
	h.starved.Add(1)
	select {
	case <-time.After(d):
	case <-fed:
	}
}

// steps calls [Host.step] around every request of the host's client.
func (h *Host) steps() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			h.step(method, req, false)
			err := invoke(ctx, method, req, reply, cc, opts...)
			h.world.Server.refused(reply, err)
			torn := h.untilTorn()
			if err == nil && h.step(method, req, true) {
				err = unanswered(ctx, torn)
			}
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			h.step(method, nil, false)
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			return &steppedStream{stream, h, method}, nil
		}),
	}
}

// steppedStream calls [Host.step] with every message that it sends or receives.
type steppedStream struct {
	grpc.ClientStream
	host   *Host
	method string
}

func (s *steppedStream) SendMsg(m any) error {
	s.host.step(s.method, m, false)
	return s.ClientStream.SendMsg(m)
}

func (s *steppedStream) RecvMsg(m any) error {
	for {
		err := s.ClientStream.RecvMsg(m)
		s.host.world.Server.refused(m, err)
		if err != nil || !s.host.step(s.method, m, true) {
			return err
		}
	}
}
