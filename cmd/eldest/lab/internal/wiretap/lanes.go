package wiretap

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// connection is a client's connection. It is made when the client connects and ends with it.
type connection struct {
	tap    *Proxy
	number int

	mu    sync.Mutex
	lane  string           // "": no call yet
	etcd  *grpc.ClientConn // nil: no call yet, or closed
	ended bool
}

// connectionKey is the context key of a call's connection.
type connectionKey struct{}

// TagConn implements stats.Handler: it adds the connection to the contexts of its calls.
func (p *Proxy) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections++
	return context.WithValue(ctx, connectionKey{}, &connection{tap: p, number: p.connections})
}

// HandleConn implements stats.Handler: when a client's connection ends, so does the one to etcd.
func (p *Proxy) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); !ended {
		return
	}
	c := ctx.Value(connectionKey{}).(*connection)
	c.mu.Lock()
	etcd := c.etcd
	c.etcd, c.ended = nil, true
	c.mu.Unlock()
	if etcd != nil {
		_ = etcd.Close()
	}
}

// TagRPC and HandleRPC implement stats.Handler; there is nothing to do.
func (p *Proxy) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (p *Proxy) HandleRPC(context.Context, stats.RPCStats) {}

// call returns the connection to etcd, which the first call makes, and the lane.
func (c *connection) call(ctx context.Context) (*grpc.ClientConn, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lane == "" {
		c.lane = c.tap.laneOf(ctx)
	}
	if c.ended {
		return nil, c.lane, context.Canceled
	}
	if c.etcd == nil {
		etcd, err := c.tap.members.dial(c.number - 1)
		if err != nil {
			return nil, c.lane, err
		}
		c.etcd = etcd
	}
	return c.etcd, c.lane, nil
}

// laneOf returns the client's user agent without gRPC's own name, or a new name.
func (p *Proxy) laneOf(ctx context.Context) string {
	agent := ""
	if values := metadata.ValueFromIncomingContext(ctx, "user-agent"); len(values) > 0 {
		agent = values[0]
	}
	name, library, _ := strings.Cut(agent, " grpc-")
	if library != "" && name != "" {
		return name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nameless++; p.nameless == 1 {
		return "client"
	}
	return fmt.Sprintf("client-%d", p.nameless)
}
