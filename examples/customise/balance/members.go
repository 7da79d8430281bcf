package balance

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
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

// look reads the members and follows them for a while.
func look(ctx context.Context, cfg Config, views chan []string) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), looking)
	defer cancel()
	begin, end := keys.Range(cfg.Group)
	asking, answered := context.WithTimeout(ctx, goodbye)
	defer answered()
	resp, err := cfg.KV.Get(asking, begin, clientv3.WithRange(end))
	if err != nil {
		return err
	}
	m := members{}
	for _, kv := range resp.Kvs {
		m.change(cfg.Group, false, kv)
	}
	m.tell(views)
	changes := cfg.Watcher.Watch(ctx, begin, clientv3.WithRange(end), clientv3.WithRev(resp.Header.Revision+1))
	for change := range changes {
		if err := change.Err(); err != nil {
			return err
		}
		for _, event := range change.Events {
			m.change(cfg.Group, event.Type == clientv3.EventTypeDelete, event.Kv)
		}
		m.tell(views)
	}
	return nil // time to look again
}

// members are the keys of the group and the names in their values.
type members map[string]string

func (m members) change(group string, gone bool, kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	if gone {
		delete(m, key)
	} else if _, err := keys.Parse(group, key); err == nil { // foreign keys are nobody
		m[key] = string(kv.Value)
	}
}

// tell replaces what nobody has read yet.
func (m members) tell(views chan []string) {
	names := make([]string, 0, len(m))
	for _, name := range m {
		names = append(names, name)
	}
	select {
	case <-views:
	default:
	}
	views <- names // the only writer: there is room
}
