package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// Campaign registers a candidate, which shares the client's session, and waits for its turn. If the session
// expires meanwhile, it registers again, at the end of the queue.
func (c *client) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	waits := false
	for {
		name, session, err := c.register(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", id, err)
		}
		leads, err := c.wait(ctx, name, func() {
			if !waits {
				waits = true
				queued()
			}
		})
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s waits: %w", id, err)
		case leads:
			return &tenure{client: c, path: c.queue + "/" + name, session: session}, nil
		}
	}
}

// register creates a candidate's node, and returns its name and the session with which it ends. The name has the
// candidate's ID, so that a node that was created by a request without an answer can be found.
func (c *client) register(ctx context.Context, id string) (name string, session int64, err error) {
	for {
		session = c.conn.SessionID()
		path, err := once(ctx, c, func() (string, error) {
			return c.conn.CreateProtectedEphemeralSequential(c.queue+"/"+id+"-", []byte(id), zk.WorldACL(zk.PermAll))
		})
		switch {
		case err == nil && c.conn.SessionID() == session:
			return strings.TrimPrefix(path, c.queue+"/"), session, nil
		case refused(err):
			return "", 0, err
		}
		if err := retry.Sleep(ctx, retryPause); err != nil {
			return "", 0, err
		}
		if err := c.unregister(ctx, id); err != nil {
			return "", 0, err
		}
	}
}

// unregister deletes all nodes of a candidate.
func (c *client) unregister(ctx context.Context, id string) error {
	names, err := c.children(ctx, c.queue)
	for _, name := range names {
		if err == nil && strings.HasSuffix(strings.TrimSuffix(name, sequence(name)), "-"+id+"-") {
			err = c.delete(ctx, c.queue+"/"+name)
		}
	}
	return err
}

// wait blocks until a node is the first of the queue, or has been deleted: then it reports false.
func (c *client) wait(ctx context.Context, own string, queued func()) (leads bool, err error) {
	for {
		names, err := c.children(ctx, c.queue)
		if err != nil {
			return false, err
		}
		i := slices.Index(names, own)
		if i <= 0 {
			return i == 0, nil
		}
		// The recipe's exists would leave a watch in the server for a node that was deleted before.
		before, err := c.get(ctx, names[i-1])
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil:
			return false, err
		}
		queued()
		select {
		case <-before.changed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Observe watches the first node of the queue. No node can be created before it, so that is enough; a watch on all
// nodes would also be triggered by each new candidate.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	var leader string
	for {
		changed, first, err := c.first(ctx)
		var its watched[string]
		if err == nil && first != "" {
			its, err = c.get(ctx, first)
			changed = its.changed
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil:
			return err
		case first != "" && first != leader:
			leader = first
			leads(its.value)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// first returns the name of the first node of the queue, or a channel that receives an event when there are nodes.
func (c *client) first(ctx context.Context) (changed <-chan zk.Event, name string, err error) {
	names, err := c.children(ctx, c.queue)
	if err != nil || len(names) > 0 {
		return nil, strings.Join(names[:min(1, len(names))], ""), err
	}
	list, err := request(ctx, c, func() (watched[[]string], error) {
		names, _, events, err := c.conn.ChildrenW(c.queue)
		return watched[[]string]{sorted(names), events}, err
	})
	return list.changed, strings.Join(list.value[:min(1, len(list.value))], ""), err
}

// Log reads the entries in the order of their numbers, which is the order of their transactions. It reads what the
// leader of the ensemble has committed: a server is asked to catch up before.
func (c *client) Log(ctx context.Context) ([]string, error) {
	if _, err := request(ctx, c, func() (string, error) { return c.conn.Sync(c.log) }); err != nil {
		return nil, err
	}
	names, err := c.children(ctx, c.log)
	var entries []string
	for _, name := range names {
		data, err := request(ctx, c, func() ([]byte, error) {
			data, _, err := c.conn.Get(c.log + "/" + name)
			return data, err
		})
		if err != nil {
			return nil, err
		}
		entries = append(entries, string(data))
	}
	return entries, err
}

// tenure is the first node of the queue.
type tenure struct {
	client  *client
	path    string
	session int64
	// over is whether it was resigned, or a server has answered that the node does not exist.
	over atomic.Bool
}

// Holds reports whether the node's session is connected. The state is read first: the ID changes after it.
func (t *tenure) Holds() bool {
	return !t.over.Load() && t.client.conn.State() == zk.StateHasSession && t.client.conn.SessionID() == t.session
}

// Append creates an entry in one transaction with a check that the leader's node exists. Nodes are never changed, so
// their version is 0.
func (t *tenure) Append(ctx context.Context, entry string) error {
	if t.over.Load() {
		return fmt.Errorf("the tenure is over: %w", peer.ErrRefused)
	}
	_, err := once(ctx, t.client, func() ([]zk.MultiResponse, error) {
		return t.client.conn.Multi(
			&zk.CheckVersionRequest{Path: t.path, Version: 0},
			&zk.CreateRequest{Path: t.client.log + "/entry-", Data: []byte(entry), Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence},
		)
	})
	if errors.Is(err, zk.ErrNoNode) {
		t.over.Store(true)
		return fmt.Errorf("the leader's node does not exist: %w", peer.ErrRefused)
	}
	return err
}

// Resign deletes the node.
func (t *tenure) Resign(ctx context.Context) error {
	t.over.Store(true)
	return t.client.delete(ctx, t.path)
}
