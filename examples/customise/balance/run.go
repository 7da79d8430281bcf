package balance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// Config configures a member. All fields but Options are required; Group and Shards must be the same
// in all members.
type Config struct {
	// Group is the election in which the members register. No shard may have its name.
	Group string
	// Shards are the elections that are distributed.
	Shards []string
	// Member names this process; no other running process may have the name.
	Member string
	Client *clientv3.Client
	// Lead is the lead function of each shard that this member leads; l.Election is the shard's
	// name. It should return when ctx ends: until then this member does not give up or take any
	// other shard. If it returns before that, the shard is given up, and the member campaigns for
	// it again after a pause.
	Lead func(ctx context.Context, l *elector.Leadership) error
	// Options change the config of the member's elector.Group.
	Options []elector.Option
}

// Run takes part until ctx ends; then it gives up its shards, waits until their lead functions have
// returned, and returns the cause. If its session or its key in the group is lost, the member gives
// up its shards and registers again. For invalid input the error wraps eldest.ErrInvalid.
func Run(ctx context.Context, cfg Config) error {
	if ctx == nil || cfg.Lead == nil || cfg.Client == nil || slices.Contains(cfg.Shards, cfg.Group) {
		return fmt.Errorf("%w: a context, a lead function, a client, and a group that is no shard are needed", eldest.ErrInvalid)
	}
	for _, name := range append([]string{cfg.Group}, cfg.Shards...) {
		if err := keys.Check(name); err != nil {
			return err
		}
	}
	node := elector.Config{NodeID: cfg.Member, Source: elector.Always(elector.Client(cfg.Client))}
	for _, option := range cfg.Options {
		option(&node)
	}
	group, err := elector.NewGroup(node)
	if err != nil {
		return err
	}
	b := &balancer{cfg: cfg, group: group, posts: make(map[string]func())}
	leave := b.campaign(ctx, cfg.Group, func(ctx context.Context, _ *elector.Leadership) error {
		<-ctx.Done() // which member leads the group has no meaning: its queue is the list of members
		return nil
	})
	defer b.give(func(string) bool { return false })
	defer leave()
	return b.follow(ctx)
}

// balancer is one call of Run. It belongs to Run's goroutine.
type balancer struct {
	cfg   Config
	group *elector.Group
	posts map[string]func() // ends the campaign or the tenure in a shard
}

// follow moves shards at each change of the list of members, until ctx ends.
func (b *balancer) follow(ctx context.Context) error {
	members := make(map[string]string) // by their keys
	for update, err := range observe.Changes(ctx, observe.Config{Election: b.cfg.Group, KV: b.cfg.Client, Watcher: b.cfg.Client}) {
		if err != nil {
			return err
		}
		if update.State.Kind == eldest.Unknown {
			continue // the next update is the difference
		}
		for _, c := range update.Left {
			delete(members, c.Key)
		}
		for _, c := range update.Registered {
			if id, err := (identity.Protobuf{}).Decode(c.Value); err == nil { // otherwise it is no member's key
				members[c.Key] = id.NodeID
			}
		}
		// A member that registers again may have two keys until its former lease has ended.
		owners := Assign(b.cfg.Shards, slices.Compact(slices.Sorted(maps.Values(members))))
		b.give(func(shard string) bool { return owners[shard] == b.cfg.Member })
		for shard, owner := range owners {
			if _, taken := b.posts[shard]; owner == b.cfg.Member && !taken {
				b.posts[shard] = b.campaign(ctx, shard, b.cfg.Lead)
			}
		}
	}
	return context.Cause(ctx)
}

// give gives up all shards except those to keep, at once, and waits until they have stopped.
func (b *balancer) give(keep func(shard string) bool) {
	var all sync.WaitGroup
	for shard, giveUp := range b.posts {
		if !keep(shard) {
			all.Go(giveUp)
			delete(b.posts, shard)
		}
	}
	all.Wait()
}

// campaign campaigns in an election, again and again. giveUp ends that, and waits for its end.
func (b *balancer) campaign(ctx context.Context, election string, lead func(context.Context, *elector.Leadership) error) (giveUp func()) {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = b.group.Run(ctx, election, lead) }) // until ctx ends
	return func() { end(); running.Wait() }
}
