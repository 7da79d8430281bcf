package wire

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Default is the endpoint where ELDEST_ENDPOINTS is not set.
const Default = "127.0.0.1:2379"

// Client is etcd's client, which counts what was answered to it. Made by Connect. All
// methods are safe for concurrent use.
type Client struct {
	*clientv3.Client

	mu       sync.Mutex
	answered map[string]int // by the last part of the method's name; of "Watch" those that were created
	more     chan struct{}  // closed, and replaced, whenever answered grows
}

// Connect returns a client of the etcd at ELDEST_ENDPOINTS (a list with commas). It does
// not block: the first request finds out whether anybody is there. Hangup ends it.
func Connect(name string) *Client {
	c := &Client{answered: map[string]int{}, more: make(chan struct{})}
	c.Client = Must(clientv3.New(clientv3.Config{
		Endpoints:         strings.Split(cmp.Or(os.Getenv("ELDEST_ENDPOINTS"), Default), ","),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		// By default it warns on stderr of each refused request, also of those that are repeated.
		Logger:      zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
		DialOptions: []grpc.DialOption{grpc.WithUserAgent(name), grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream)},
	}))
	return c
}

// Hangup closes the connection. It does not wait for etcd.
func (c *Client) Hangup() { _ = c.Close() }

// Watching blocks until etcd has said of n watches of this client, since it was made, that
// they are in place; watches that have ended count. It returns ctx's cause if that ends
// first.
func (c *Client) Watching(ctx context.Context, n int) error { return c.wait(ctx, "Watch", n) }

// Looked blocks until etcd has answered n reads of this client that are no part of a
// transaction, since it was made. It ends like Watching.
func (c *Client) Looked(ctx context.Context, n int) error { return c.wait(ctx, "Range", n) }

func (c *Client) wait(ctx context.Context, method string, n int) error {
	for {
		c.mu.Lock()
		answered, more := c.answered[method], c.more
		c.mu.Unlock()
		if answered >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%s: %d answers of %d: %w", method, answered, n, context.Cause(ctx))
		}
	}
}

func (c *Client) count(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered[path.Base(method)]++
	close(c.more)
	c.more = make(chan struct{})
}

func (c *Client) unary(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, resp, cc, opts...)
	if err == nil {
		c.count(method)
	}
	return err
}

func (c *Client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &counted{ClientStream: s, client: c, method: method}, nil
}

// counted is a stream whose answers "created" are counted.
type counted struct {
	grpc.ClientStream
	client *Client
	method string
}

// RecvMsg counts an answer before the client hears of it.
func (s *counted) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if resp, ok := m.(*etcdserverpb.WatchResponse); ok && err == nil && resp.Created && !resp.Canceled {
		s.client.count(s.method)
	}
	return err
}
