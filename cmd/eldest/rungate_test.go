//go:build linux

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// asked notes what reaches etcd.
type asked struct {
	clientv3.Lease
	clientv3.KV
	clientv3.Txn
	requests chan string
}

func (a asked) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	a.requests <- "revoke"
	return &clientv3.LeaseRevokeResponse{}, nil
}

func (a asked) Then(...clientv3.Op) clientv3.Txn { return a }
func (a asked) Else(...clientv3.Op) clientv3.Txn { return a }

func (a asked) Commit() (*clientv3.TxnResponse, error) {
	a.requests <- "commit"
	return &clientv3.TxnResponse{}, nil
}

type askedKV struct{ asked }

func (a askedKV) Txn(context.Context) clientv3.Txn { return a.asked }

// While a program may run nothing is sent that lets another one lead; what is given up
// meanwhile is never sent.
func TestRunGate(t *testing.T) {
	etcd := asked{requests: make(chan string, 10)}
	g := newGate()
	revoke := func(ctx context.Context) error {
		_, err := gatedLease{etcd, g}.Revoke(ctx, 1)
		return err
	}
	mailboxes, _ := keys.MailboxRange("svc")
	send := func(ctx context.Context, ops ...clientv3.Op) error {
		_, err := gatedKV{askedKV{etcd}, g, mailboxes}.Txn(ctx).Then(ops...).Else(clientv3.OpGet("svc/1")).Commit()
		return err
	}
	commit := func(ctx context.Context) error { return send(ctx) }
	remove := func(ctx context.Context) error {
		return send(ctx, clientv3.OpPut(keys.Mailbox("svc", 1), ""), clientv3.OpDelete("svc/1"))
	}
	for what, send := range map[string]func(context.Context) error{"revoke": revoke, "commit": commit, "remove": remove} {
		what := strings.Replace(what, "remove", "commit", 1)
		require.NoError(t, send(t.Context()))
		require.Equal(t, what, <-etcd.requests)

		g.set(true)
		g.set(true)
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := send(short)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errHeld)
		require.Empty(t, etcd.requests)

		sent := make(chan error)
		go func() { sent <- send(t.Context()) }()
		g.set(false)
		require.NoError(t, <-sent)
		require.Equal(t, what, <-etcd.requests)
	}

	// A mailbox lets nobody lead.
	g.set(true)
	require.NoError(t, send(t.Context(), clientv3.OpPut(keys.Mailbox("svc", 1), ""), clientv3.OpGet("svc/1")))
	require.Equal(t, "commit", <-etcd.requests)
	require.NoError(t, send(t.Context(), clientv3.OpDelete(keys.Mailbox("svc", 1))))
	require.Equal(t, "commit", <-etcd.requests)
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
	r := newRunner(cmd, conn, &httpFlag{}, runOptions{
		name: "svc", ttl: 30 * time.Second, grace: 500 * time.Millisecond, restart: restartNever,
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
