package balance

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// looking is how long a watch is trusted: a stream that has fallen silent looks like a
// group in which nothing happens.
const looking = time.Minute

// follow hands out the names of the members, each time that they have changed, until ctx
// ends. views has room for one: a reader that is slow gets the newest.
func follow(ctx context.Context, cfg Config, views chan []string) {
	for ctx.Err() == nil {
		if err := look(ctx, cfg, views); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// look reads the members at each change of the group, for a while. The watch is in place before
// the first reading, so that no change is missed.
func look(ctx context.Context, cfg Config, views chan []string) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), looking)
	defer cancel()
	begin, end := keys.Range(cfg.Group)
	for change := range cfg.Watcher.Watch(ctx, begin, clientv3.WithRange(end), clientv3.WithCreatedNotify()) {
		if err := change.Err(); err != nil {
			return err
		}
		asking, answered := context.WithTimeout(ctx, goodbye)
		queue, err := observe.Queue(asking, cfg.KV, nil, cfg.Group)
		answered()
		if err != nil {
			return err
		}
		members := make([]string, len(queue))
		for i, c := range queue {
			members[i] = string(c.Value)
		}
		select { // replaces what nobody has read yet
		case <-views:
		default:
		}
		views <- members // the only writer: there is room
	}
	return nil // time to look again
}
