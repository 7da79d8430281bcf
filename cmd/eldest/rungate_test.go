//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/keys"
)

// While a program may run nothing is sent that lets another one lead; what is given up
// meanwhile is never sent.
func TestRunGate(t *testing.T) {
	g, requests := newGate(), make(chan string, 10)
	mailboxes, _ := keys.MailboxRange("svc")
	client := borrowed(t).Client(t, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(g.intercept(mailboxes),
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				requests <- path.Base(method)
				return invoke(ctx, method, req, reply, cc, opts...)
			}))
	})
	revoke := func(ctx context.Context) error {
		_, err := client.Revoke(ctx, 1)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	}
	send := func(ctx context.Context, ops ...clientv3.Op) error {
		_, err := client.Txn(ctx).Then(ops...).Else(clientv3.OpGet("svc/1")).Commit()
		return err
	}
	commit := func(ctx context.Context) error { return send(ctx) }
	remove := func(ctx context.Context) error {
		return send(ctx, clientv3.OpPut(keys.Mailbox("svc", 1), ""), clientv3.OpDelete("svc/1"))
	}
	nested := func(ctx context.Context) error {
		return send(ctx, clientv3.OpPut(keys.Mailbox("svc", 1), ""), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("svc/1")}, nil))
	}
	for what, send := range map[string]func(context.Context) error{"LeaseRevoke": revoke, "Txn": commit, "Txn to remove": remove, "Txn in a Txn": nested} {
		what, _, _ := strings.Cut(what, " ")
		require.NoError(t, send(t.Context()))
		require.Equal(t, what, <-requests)

		g.set(true)
		g.set(true)
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := send(short)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, connect.ErrHeld)
		require.Empty(t, requests)

		sent := make(chan error)
		go func() { sent <- send(t.Context()) }()
		g.set(false)
		require.NoError(t, <-sent)
		require.Equal(t, what, <-requests)
	}

	// A mailbox lets nobody lead.
	g.set(true)
	require.NoError(t, send(t.Context(), clientv3.OpPut(keys.Mailbox("svc", 1), ""), clientv3.OpGet("svc/1")))
	require.Equal(t, "Txn", <-requests)
	require.NoError(t, send(t.Context(), clientv3.OpDelete(keys.Mailbox("svc", 1))))
	require.Equal(t, "Txn", <-requests)
}

// The gate is shut from the win until nothing of the program runs, and at no other time.
func TestRunShutsTheGateWhileTheProgramMayRun(t *testing.T) {
	if !alone(t) {
		return
	}
	etcd := borrowed(t)
	diary := newDiary(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := newRunCmd()
	cmd.SetContext(ctx)
	cmd.SetErr(io.Discard)
	require.NoError(t, cmd.ParseFlags([]string{"--ttl", "30s"}))
	conn := &connect.Flags{Endpoints: []string{etcd.endpoint}, DialTimeout: time.Second, CommandTimeout: patience}
	r := newRunner(cmd, runOptions{
		standFlags: &standFlags{conn: conn, ttl: 30 * time.Second},
		name:       "svc", grace: 500 * time.Millisecond, restart: restartNever,
		path: "/usr/bin/env", program: diary.program("A"), hookTimeout: time.Second,
	})
	shut := func() bool {
		r.gate.mu.Lock()
		defer r.gate.mu.Unlock()
		return r.gate.shut
	}
	require.False(t, shut())
	result := make(chan error)
	go func() { result <- r.run() }()
	diary.lives("A")
	require.True(t, shut(), "the program runs, and the lease could be given back")
	cancel()
	require.NoError(t, <-result)
	require.False(t, shut())
	diary.nobody("svc")
}
