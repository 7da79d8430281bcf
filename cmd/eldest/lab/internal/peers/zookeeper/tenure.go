package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

type tenure struct {
	client *client
	node   node
	// over is whether it was resigned, or a server has answered that the node does not exist.
	over atomic.Bool
}

// Holds reports whether the session is connected.
func (t *tenure) Holds() bool { return !t.over.Load() && t.client.session.alive(t.node.session) }

// Append creates an entry in one transaction with a check that the leader's node exists. Nodes are never changed, so
// their version is 0.
func (t *tenure) Append(ctx context.Context, entry string) error {
	if t.over.Load() {
		return fmt.Errorf("zookeeper: append: the tenure is over: %w", peer.ErrRefused)
	}
	z := t.client
	_, err := call(ctx, z, func() ([]zk.MultiResponse, error) {
		return z.conn.Multi(
			&zk.CheckVersionRequest{Path: t.node.path, Version: 0},
			&zk.CreateRequest{Path: z.log + "/entry-", Data: []byte(entry), Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence},
		)
	}, nil)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		t.over.Store(true)
		return fmt.Errorf("zookeeper: append: the leader's node does not exist: %w", peer.ErrRefused)
	case err != nil:
		return fmt.Errorf("zookeeper: append: %w", err)
	}
	return nil
}

// Resign deletes the node.
func (t *tenure) Resign(ctx context.Context) error {
	t.over.Store(true)
	if err := t.client.delete(ctx, t.node.path); err != nil {
		return fmt.Errorf("zookeeper: resign: %w", err)
	}
	return nil
}
