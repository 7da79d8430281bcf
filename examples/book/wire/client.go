package wire

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Default is the endpoint if ELDEST_ENDPOINTS is not set.
const Default = "127.0.0.1:2379"

// Client is etcd's client, and counts the watches that are in place. It is made by Connect. All
// methods are safe for concurrent use.
type Client struct {
	*clientv3.Client

	mu      sync.Mutex
	created int           // watches
	more    chan struct{} // closed, and replaced, whenever created grows
}

// Connect returns a client of the etcd at ELDEST_ENDPOINTS (a list with commas). It does not block:
// the first request shows whether etcd can be reached. Hangup ends it.
func Connect(name string) *Client {
	c := &Client{more: make(chan struct{})}
	c.Client = Must(clientv3.New(clientv3.Config{
		Endpoints:         strings.Split(cmp.Or(os.Getenv("ELDEST_ENDPOINTS"), Default), ","),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		// By default it warns on stderr of each refused request, also of those that are repeated.
		Logger:      zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
		DialOptions: []grpc.DialOption{grpc.WithUserAgent(name), grpc.WithChainStreamInterceptor(c.stream)},
	}))
	return c
}

// Hangup closes the connection. It does not wait for etcd.
func (c *Client) Hangup() { _ = c.Close() }

// Watching blocks until etcd has confirmed that n watches of this client, since it was made, are in
// place; watches that have ended count. If ctx ends first, it returns ctx's cause.
func (c *Client) Watching(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		created, more := c.created, c.more
		c.mu.Unlock()
		if created >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%d watches of %d are in place: %w", created, n, context.Cause(ctx))
		}
	}
}

func (c *Client) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created++
	close(c.more)
	c.more = make(chan struct{})
}

func (c *Client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &counted{ClientStream: s, client: c}, nil
}

// counted is a stream whose confirmations of watches are counted.
type counted struct {
	grpc.ClientStream
	client *Client
}

// RecvMsg counts a confirmation before the client receives it.
func (s *counted) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if resp, ok := m.(*etcdserverpb.WatchResponse); ok && err == nil && resp.Created && !resp.Canceled {
		s.client.count()
	}
	return err
}
