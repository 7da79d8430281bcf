package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Replace replaces member i, which is killed if it runs, by a new member: the old one is removed
// from the cluster and a new one is added, with the same name and addresses, another ID and no
// data. It blocks until the new member serves requests with the data of the others, or ctx ends. It
// needs a majority of the other members; on an error the member is dead, and Replace may be tried
// again.
func (c *Cluster) Replace(ctx context.Context, i int) error { return c.replace(ctx, c.members[i]) }

// ReplaceElsewhere is Replace by a member with another client URL, on a new port: Member.Endpoint
// and Endpoints change, and nothing listens at the old URL any more. No other goroutine may use the
// cluster meanwhile; clients that exist keep the endpoints that they have.
func (c *Cluster) ReplaceElsewhere(ctx context.Context, i int) error {
	m := c.members[i]
	if m.running() != nil {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	more, err := reservePorts(1)
	if err != nil {
		return err
	}
	c.ports.join(more)
	m.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", more.ports[0])
	return c.replace(ctx, m)
}

func (c *Cluster) replace(ctx context.Context, m *Member) error {
	if m.running() != nil {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	cli, err := c.Admin(nil)
	if err != nil {
		return err
	}
	if err := attempts(ctx, func(ctx context.Context) error { return removeMember(ctx, cli, "http://"+m.host) }); err != nil {
		return fmt.Errorf("etcdtest: removing %s: %w", m.Name, err)
	}
	again := false
	if err := attempts(ctx, func(ctx context.Context) error {
		defer func() { again = true }()
		return addMember(ctx, cli, "http://"+m.host, again)
	}); err != nil {
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

// spread blocks until the other members have applied the addition of m: a new member asks any one
// of them for the member list, and ends if it is not in that list. Members that are partitioned are
// left out: the new member cannot ask them either.
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
			_, err = cli.MemberList(ctx) // from 3.5 on linearizable: a member that answers has applied the addition
		}
		if err != nil && other.Running() {
			return fmt.Errorf("etcdtest: asking %s for the new %s: %w", other.Name, m.Name, err)
		}
	}
	return nil
}

// changeTimeout bounds one attempt to change the members.
const changeTimeout = 3 * time.Second

// attempts repeats a change of the members that got no answer: in time, or because the connection
// broke. etcd has no timeout of its own for such a change, and loses it if the leader has just been
// killed, as the member to be replaced may be. A change that etcd refuses is not repeated.
func attempts(ctx context.Context, change func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, changeTimeout)
		err := change(once)
		// An error of etcd has no gRPC status: the client has converted it.
		unanswered := once.Err() != nil || status.Code(err) == codes.Unavailable ||
			errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail)
		cancel()
		if err == nil || !unanswered || pause(ctx) != nil {
			return err
		}
	}
}

// pause waits before a change is repeated; at the end of ctx it returns the context's cause.
func pause(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// removeMember removes the member with a peer URL. An earlier attempt may have removed it.
func removeMember(ctx context.Context, cli *clientv3.Client, url string) error {
	listed, err := cli.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, old := range listed.Members {
		if len(old.PeerURLs) != 1 || old.PeerURLs[0] != url {
			continue
		}
		if _, err := cli.MemberRemove(ctx, old.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return err
		}
	}
	return nil
}

// addMember adds a member, unless an earlier attempt has done so: again is set if there was one. etcd derives
// its ID from its URL and the time in seconds: a member that was added and removed within this second cannot
// be added again before the next. Until then etcd answers that there is no such member.
func addMember(ctx context.Context, cli *clientv3.Client, url string, again bool) error {
	for {
		_, err := cli.MemberAdd(ctx, []string{url})
		if again && errors.Is(err, rpctypes.ErrPeerURLExist) {
			return nil
		}
		if !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}
