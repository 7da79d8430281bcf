package etcdtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoLeader is returned when the cluster has no leader that its members agree on
// before the context ends.
var ErrNoLeader = errors.New("etcdtest: no etcd leader")

// Leader blocks until a majority of the members follow the same leader, or ctx ends, and returns
// the index of that leader. It asks every running member directly.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if i := c.leaderNow(ctx); i >= 0 {
			return i, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return -1, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
		}
	}
}

// Leads reports whether a member is etcd's leader according to a majority of the members. It blocks
// for at most the given time, or until ctx ends.
func (c *Cluster) Leads(ctx context.Context, member int, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	leader, err := c.Leader(ctx)
	return err == nil && leader == member
}

// leaderNow counts the members that follow each leader, in the newest Raft term only: a member that
// was partitioned may still report the leader of an older term.
func (c *Cluster) leaderNow(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var mu sync.Mutex
	var newest uint64
	votes := make(map[uint64]int)
	var wg sync.WaitGroup
	for _, m := range c.members {
		if !m.Running() {
			continue
		}
		wg.Go(func() {
			cli, err := c.Admin(m)
			if err != nil {
				return
			}
			st, err := cli.Status(ctx, m.Endpoint)
			if err != nil || st.Leader == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if st.RaftTerm > newest {
				newest = st.RaftTerm
				clear(votes)
			}
			if st.RaftTerm == newest {
				votes[st.Leader]++
			}
		})
	}
	wg.Wait()
	for _, m := range c.members {
		if m.Running() && votes[m.ID()] > len(c.members)/2 {
			return m.Index
		}
	}
	return -1
}

// MoveLeader transfers etcd's leadership to the member to and blocks until a majority follows it,
// or ctx ends.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	for {
		from, err := c.Leader(ctx)
		if err != nil || from == to {
			return err
		}
		cli, err := c.Admin(c.members[from])
		if err != nil {
			return err
		}
		// After a failure the next round asks which member leads: the transfer may have happened,
		// or another member may have been elected.
		if _, err := cli.MoveLeader(ctx, c.members[to].ID()); err != nil && ctx.Err() != nil {
			return fmt.Errorf("etcdtest: moving the leader to %d: %w", to, err)
		}
	}
}

// Revision is the current revision of the store, from a linearizable read.
func (c *Cluster) Revision(ctx context.Context) (int64, error) {
	cli, err := c.Admin(nil)
	if err != nil {
		return 0, err
	}
	resp, err := cli.Get(ctx, "etcdtest-revision", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// Version is the cluster version, which the members agree on: that of the oldest member, "3.5.0" while
// one of them is a 3.5, and "not_decided" until a new cluster's leader has heard of all. Each member
// reports it at its client URL; the first that answers is asked.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	var version struct {
		Cluster string `json:"etcdcluster"`
	}
	errs := []error{ErrNoLeader}
	for _, m := range c.members {
		if !m.Running() {
			continue
		}
		err := getJSON(ctx, m.Endpoint+"/version", &version)
		if err == nil {
			return version.Cluster, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// getJSON reads a JSON object by HTTP.
func getJSON(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(resp.Body).Decode(v), resp.Body.Close())
}

// Compact removes all history up to the current revision and blocks until the member that carries
// out the request has deleted it. It returns that revision: reads and watches of older ones fail
// from then on.
func (c *Cluster) Compact(ctx context.Context) (int64, error) {
	rev, err := c.Revision(ctx)
	if err != nil {
		return 0, err
	}
	cli, err := c.Admin(nil)
	if err != nil {
		return 0, err
	}
	_, err = cli.Compact(ctx, rev, clientv3.WithCompactPhysical())
	return rev, err
}

// Defragment makes every running member rewrite its store, one after another, and blocks until that
// is done. A member answers no requests meanwhile.
func (c *Cluster) Defragment(ctx context.Context) error {
	for _, m := range c.members {
		if !m.Running() {
			continue
		}
		cli, err := c.Admin(m)
		if err != nil {
			return err
		}
		if _, err := cli.Defragment(ctx, m.Endpoint); err != nil {
			return fmt.Errorf("etcdtest: defragmenting %s: %w", m.Name, err)
		}
	}
	return nil
}

// Admin returns the cluster's own client of member m, or of all members for nil. All callers share
// it. It is closed with the cluster and must not be closed by a caller.
func (c *Cluster) Admin(m *Member) (*clientv3.Client, error) {
	eps := c.Endpoints()
	if m != nil {
		eps = []string{m.Endpoint}
	}
	name := strings.Join(eps, " ") // the endpoints change with ReplaceElsewhere
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: the cluster is closed", ErrState)
	}
	if cli := c.clients[name]; cli != nil {
		return cli, nil
	}
	cli, err := dial(eps, nil)
	if err == nil {
		c.clients[name] = cli
	}
	return cli, err
}
