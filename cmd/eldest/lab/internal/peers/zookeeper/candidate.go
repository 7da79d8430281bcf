package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

type candidate struct {
	client *client
	id     string
}

// Candidate makes a candidate, which shares the client's session.
func (c *client) Candidate(id string) (peer.Candidate, error) {
	return &candidate{client: c, id: id}, nil
}

// Campaign registers the candidate and waits for its turn. If the session expires meanwhile, it registers again,
// at the end of the queue.
func (c *candidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	once := func() {
		if queued != nil {
			queued()
			queued = nil
		}
	}
	for {
		node, err := c.register(ctx)
		if err != nil {
			return nil, fmt.Errorf("zookeeper: register %s: %w", c.id, err)
		}
		leads, err := c.wait(ctx, node, once)
		switch {
		case err != nil:
			c.client.remove(node)
			return nil, fmt.Errorf("zookeeper: %s waits: %w", c.id, err)
		case leads:
			return &tenure{client: c.client, node: node}, nil
		}
	}
}

// node is the node of a candidate.
type node struct {
	path string
	// session is the number of the session that it ends with.
	session int
}

// register creates the candidate's node. The name has the candidate's ID, so that a node that was created by a
// request without an answer can be found.
func (c *candidate) register(ctx context.Context) (node, error) {
	z := c.client
	for {
		before := z.session.current()
		path, err := call(ctx, z, func() (string, error) {
			return z.conn.CreateProtectedEphemeralSequential(z.queue+"/"+c.id+"-", []byte(c.id), zk.WorldACL(zk.PermAll))
		}, func(path string) { z.remove(node{path, before}) })
		switch {
		case err == nil && z.session.current() == before:
			return node{path, before}, nil
		case refused(err), errors.Is(err, errClosed):
			return node{}, err
		}
		if err := pause(ctx, retryPause); err != nil {
			return node{}, err
		}
		if err := c.unregister(ctx); err != nil {
			return node{}, err
		}
	}
}

// unregister deletes all nodes of the candidate.
func (c *candidate) unregister(ctx context.Context) error {
	z := c.client
	children, err := z.candidates(ctx)
	if err != nil {
		return err
	}
	for _, name := range children {
		if strings.HasSuffix(strings.TrimSuffix(name, sequence(name)), "-"+c.id+"-") {
			if err := z.delete(ctx, z.queue+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait blocks until the node is the first of the queue, or has been deleted: then it reports false.
func (c *candidate) wait(ctx context.Context, n node, queued func()) (leads bool, err error) {
	z := c.client
	for {
		children, err := z.candidates(ctx)
		if err != nil {
			return false, err
		}
		before, registered := predecessor(children, strings.TrimPrefix(n.path, z.queue+"/"))
		switch {
		case !registered:
			return false, nil
		case before == "":
			return true, nil
		}
		// The recipe's exists would leave a watch in the server for a node that was deleted before.
		_, deleted, err := z.watch(ctx, before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return false, err
		}
		queued()
		select {
		case <-deleted: // or the session has expired: the next list tells
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
