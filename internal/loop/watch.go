package loop

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
)

// late is the token of a watch of the candidate's key while the key does not exist.
const late eldest.Token = -1

// reported is the token of an older candidate's watch that has reported the end. The same older
// candidate may be in the next answer of etcd again: etcd may have been restored from a backup.
const reported eldest.Token = -2

// none is not an event, and is ignored.
const none core.Kind = 255

// watched is a key that is watched in one life; the zero value: none.
type watched struct {
	token eldest.Token
	stop  func()
}

func (w *watched) end() {
	if w.stop != nil {
		w.stop()
	}
	*w = watched{}
}

// watch watches the keys that the machine wants to be watched, and no others.
func (c *Candidate) watch(w core.Watch) {
	user := c.user // the candidate may have another user when the watch ends
	if w.Late {
		w.Key = late
	}
	if c.own.token != w.Key {
		c.own.end()
		switch {
		case w.Key == late:
			c.own = watched{late, c.follow(func(ctx context.Context, take func(core.Event)) { c.appeared(ctx, user, take) })}
		case w.Key > 0:
			c.own = c.until(watch.Life{Key: c.name.Key, Token: w.Key, Lease: c.bound(), Known: c.known(w.Key)}, func(revision int64, err error) core.Event {
				return ownGone(user, revision, err)
			})
		}
	}
	c.heed(w.Elder)
	// While etcd is asked which candidates are older, the old watch stays: its end would be sent
	// before the request.
	if c.elder.token != w.Elder.Token && (w.Elder.Token > 0 || c.state.Phase != core.Proving) {
		c.elder.end()
		if w.Elder.Token > 0 {
			c.elder = c.until(watch.Life{Key: w.Elder.Key, Token: w.Elder.Token, Known: c.state.Position.Revision}, func(revision int64, err error) core.Event {
				if err != nil {
					return core.Event{Kind: core.Leave, Err: err}
				}
				return core.Event{Kind: core.ElderDeleted, Revision: revision}
			})
		}
	}
}

// until watches a life, and handles its end as the event that become returns.
func (c *Candidate) until(l watch.Life, become func(revision int64, err error) core.Event) watched {
	source, stopped := c.user.Source, false
	stop := source.Until(c.session.ctx, c.session.stream(source), c.session.tasks.run, l, func(revision int64, err error) {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		if !stopped {
			c.Do(become(revision, err))
		}
	})
	return watched{l.Token, func() { stopped = true; stop() }}
}

// follow runs wait on a goroutine until stop, and handles the events that wait passes to take.
func (c *Candidate) follow(wait func(ctx context.Context, take func(core.Event))) (stop func()) {
	ctx, stop := context.WithCancel(c.session.ctx)
	c.session.tasks.run(func() {
		wait(ctx, func(e core.Event) {
			c.session.mu.Lock()
			defer c.session.mu.Unlock()
			if ctx.Err() == nil {
				c.Do(e)
			}
		})
	})
	return stop
}

// ownGone returns the event for the end of the watch of the candidate's key.
func ownGone(user *User, revision int64, err error) core.Event {
	switch {
	case err == nil:
		return core.Event{Kind: core.KeyDeleted, Revision: revision}
	case errors.Is(err, eldest.ErrClosed), rpcerr.Closed(user.KV), rpcerr.Closed(user.Source.Watcher):
		// The key may still exist; without the client nothing can be known about it.
		err = fmt.Errorf("%w: the etcd client", eldest.ErrClosed)
	case errors.Is(err, watch.ErrOverwritten):
		err = fmt.Errorf("%w: %w", eldest.ErrDeposed, err)
	default:
		// etcd refuses the watch of the candidate's key, for example because a permission is
		// missing. Without the watch a deletion by a user would not be noticed.
		err = fmt.Errorf("%w: the candidate's key cannot be watched: %w", eldest.ErrDeposed, err)
	}
	return core.Event{Kind: core.KeyUnsafe, Err: err}
}

// appeared waits for the candidate's key, which a late registration may create, and passes that to
// take. It blocks until then, or ctx ends, or the client is closed.
func (c *Candidate) appeared(ctx context.Context, user *User, take func(core.Event)) {
	ours := func(kvs []*mvccpb.KeyValue) bool {
		switch {
		case len(kvs) == 0 || kvs[0].Lease != c.session.lease:
			return false
		case user.Shared && !c.late(kvs[0]), !user.Shared && c.session.past.Held(eldest.Token(kvs[0].CreateRevision), c):
			return false
		}
		take(core.Event{Kind: core.KeyAppeared, Token: eldest.Token(kvs[0].CreateRevision)})
		return true
	}
	if user.Shared {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, underWay)
		defer cancel()
	}
	policy := user.Policy("watch")
	for failures := 0; ; failures++ {
		err := user.Source.Follow(ctx, watch.Target{
			Key:      c.name.Key,
			Snapshot: func(resp *clientv3.GetResponse) bool { return ours(resp.Kvs) },
			Change: func(_ int64, events []*clientv3.Event) bool {
				return events[0].Type == mvccpb.PUT && ours([]*mvccpb.KeyValue{events[0].Kv})
			},
			// Requests are late in networks in which streams may stop delivering.
			Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
				return clientv3.OpGet(c.name.Key), func(answer clientv3.OpResponse) bool { return !ours(answer.Get().Kvs) }
			},
		})
		if err == nil || errors.Is(err, eldest.ErrClosed) || retry.Sleep(ctx, policy.Backoff(failures)) != nil {
			return
		}
	}
}
