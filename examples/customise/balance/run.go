package balance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// Config configures a member. All fields but Candidate are required; Group and Shards must be the
// same in all members.
type Config struct {
	// Group is the election in which the members register. No shard may have its name.
	Group string
	// Shards are the elections that are distributed.
	Shards []string
	// Member names this process; no other running process may have the name.
	Member string
	// Session is the session of all candidates. The caller closes it.
	Session *lease.Session
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Lead is the lead function of each shard that this member leads; l.Election is the shard's
	// name. It should return when ctx ends: until then this member does not give up or take any
	// other shard. If it returns before that, the shard is given up, and the member campaigns for
	// it again after a pause.
	Lead func(ctx context.Context, l *election.Leadership) error
	// Candidate configures the candidates.
	Candidate election.Options
}

// balancer is one call of Run. It belongs to Run's goroutine.
type balancer struct {
	cfg        Config
	candidates map[string]*election.Candidate
	posts      map[string]post
}

// post is a shard that this member leads or campaigns for.
type post struct {
	end  context.CancelFunc
	done chan struct{}
}

// pause is the time between two campaigns for one shard, and between two failed reads of the
// members.
const pause = 200 * time.Millisecond

// goodbye bounds the requests at the end.
const goodbye = 5 * time.Second

// Run takes part until ctx or the session ends; then it gives up its position and its shards, waits
// until their lead functions have returned, and returns the cause. After eldest.ErrSessionLost or
// eldest.ErrDeposed (the position was deleted by hand) open a new session and call Run again. For
// invalid input the error wraps eldest.ErrInvalid.
func Run(ctx context.Context, cfg Config) error {
	if ctx == nil || cfg.Session == nil || cfg.Lead == nil || cfg.Member == "" || slices.Contains(cfg.Shards, cfg.Group) {
		return fmt.Errorf("%w: a context, a session, a lead function, a name, and a group that is no shard are needed", eldest.ErrInvalid)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(cfg.Session.Context(), func() { cancel(cfg.Session.Err()) })()

	b := &balancer{cfg: cfg, candidates: map[string]*election.Candidate{}, posts: map[string]post{}}
	defer b.close(context.WithoutCancel(ctx))
	for _, name := range append([]string{cfg.Group}, cfg.Shards...) {
		candidate, err := b.candidate(name)
		if err != nil {
			return err
		}
		b.candidates[name] = candidate
	}
	place := b.candidates[cfg.Group]
	if _, err := place.Register(ctx); err != nil {
		return err
	}
	views, followed := make(chan []string, 1), make(chan struct{})
	go func() {
		defer close(followed)
		follow(ctx, cfg, views)
	}()
	err := b.balance(ctx, views)
	cancel(err)
	// The position is given up first: new owners of our shards queue behind us while we stop.
	leaving, end := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer end()
	_ = place.Close(leaving)
	b.give(nil)
	<-followed
	return err
}

// balance follows the members until ctx ends.
func (b *balancer) balance(ctx context.Context, views <-chan []string) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case members := <-views:
			if !slices.Contains(members, b.cfg.Member) {
				return fmt.Errorf("%w: %q is not a member any more", eldest.ErrDeposed, b.cfg.Member)
			}
			owners := Assign(b.cfg.Shards, members)
			b.give(func(shard string) bool { return owners[shard] == b.cfg.Member })
			for shard, owner := range owners {
				if _, standing := b.posts[shard]; owner == b.cfg.Member && !standing {
					b.posts[shard] = b.take(ctx, b.candidates[shard])
				}
			}
		}
	}
}

// give gives up all shards except those to keep, at once, and waits until they have stopped.
func (b *balancer) give(keep func(shard string) bool) {
	var going []post
	for shard, p := range b.posts {
		if keep == nil || !keep(shard) {
			p.end()
			going = append(going, p)
			delete(b.posts, shard)
		}
	}
	for _, p := range going {
		<-p.done
	}
}

// take campaigns and leads, again and again, until the post is ended.
func (b *balancer) take(ctx context.Context, candidate *election.Candidate) post {
	ctx, end := context.WithCancel(ctx)
	p := post{end: end, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			if l, err := candidate.Campaign(ctx); err == nil {
				_ = l.Lead(ctx, func(ctx context.Context) error { return b.cfg.Lead(ctx, l) })
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return p
}

func (b *balancer) candidate(name string) (*election.Candidate, error) {
	return election.New(election.Config{
		Election: name, Session: b.cfg.Session, KV: b.cfg.KV, Watcher: b.cfg.Watcher, Value: []byte(b.cfg.Member), Options: b.cfg.Candidate,
	})
}

// close deletes all keys that are left in the queues.
func (b *balancer) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	for _, candidate := range b.candidates {
		if err := candidate.Close(ctx); errors.Is(err, context.DeadlineExceeded) {
			return // the rest is deleted with the lease
		}
	}
}
