package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Replace puts a new member in the place of member i, which is killed if it runs: the
// old one is removed from the cluster, a new one added, with the same name and
// addresses, another ID and no data. It blocks until that one serves requests, with
// all that the others have told it, or ctx ends. It needs a majority of the others; on
// an error the member is dead, and Replace may be tried again.
func (c *Cluster) Replace(ctx context.Context, i int) error {
	m := c.members[i]
	if m.running() != nil {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	cli, err := c.Admin(nil)
	if err != nil {
		return err
	}
	// What was done by an attempt that failed is done: both are asked by what the
	// cluster says now.
	listed, err := cli.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, old := range listed.Members {
		if len(old.PeerURLs) != 1 || old.PeerURLs[0] != "http://"+m.host {
			continue
		}
		if _, err := cli.MemberRemove(ctx, old.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return fmt.Errorf("etcdtest: removing %s: %w", m.Name, err)
		}
	}
	if err := addMember(ctx, cli, "http://"+m.host); err != nil {
		return fmt.Errorf("etcdtest: adding a new %s: %w", m.Name, err)
	}
	if err := c.spread(ctx, m); err != nil {
		return err
	}
	m.mu.Lock()
	past := m.dataDir()
	m.life++
	m.mu.Unlock()
	if err := os.RemoveAll(past); err != nil {
		return err
	}
	return c.restart(ctx, m)
}

// spread blocks until the others have heard that m was added: a new member asks any one of
// them who belongs to the cluster, and ends if it is not told of itself. Those who are cut
// off cannot be asked by it either.
func (c *Cluster) spread(ctx context.Context, m *Member) error {
	for i, other := range c.members {
		c.mu.Lock()
		cut := c.cut[i] != 0
		c.mu.Unlock()
		if other == m || cut || !other.Running() {
			continue
		}
		cli, err := c.Admin(other)
		if err == nil {
			_, err = cli.MemberList(ctx) // linearizable: who answers has applied the addition
		}
		if err != nil && other.Running() {
			return fmt.Errorf("etcdtest: asking %s for the new %s: %w", other.Name, m.Name, err)
		}
	}
	return nil
}

// addMember adds a member. etcd makes its ID of its URL and of the time, in seconds: one
// that was added and removed within this second cannot be added again before the next.
// etcd then says that there is no such member.
func addMember(ctx context.Context, cli *clientv3.Client, url string) error {
	for {
		_, err := cli.MemberAdd(ctx, []string{url})
		if !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
