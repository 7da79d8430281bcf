package balance

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// looking is how long a watch is trusted: a stream that delivers nothing cannot be distinguished
// from a group without changes.
const looking = time.Minute

// follow sends the names of the members, each time that they have changed, until ctx ends. views
// has a capacity of one: a slow reader receives the newest.
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

// look reads the members at each change of the group, until looking is over. The watch is in place
// before the first read, so that no change is missed.
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
		select { // replaces a value that was not read
		case <-views:
		default:
		}
		views <- members // the only writer: this does not block
	}
	return nil // the watch is opened again
}
