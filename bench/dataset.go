package bench

import (
	"context"
	"crypto/rand"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// valueSize is the size of a value of the data, pageSize the number of values in a reply.
	valueSize = 16 << 10
	pageSize  = 64
)

// dataset is the data of services, as long as the run lasts.
type dataset struct {
	*leased
	written map[int]bool
}

// of returns the prefix of n MiB of random values; it writes them at the first call.
func (d *dataset) of(n int) (prefix string) {
	prefix = fmt.Sprintf("%s-data-%d/", d.run.name, n)
	if d.written[n] {
		return prefix
	}
	d.written[n] = true
	value := make([]byte, valueSize)
	for i := range n << 20 / valueSize {
		_, _ = rand.Read(value) // never fails
		check(d.put(d.run.ctx, fmt.Sprintf("%s%08d", prefix, i), string(value)))
	}
	return prefix
}

// dataCopy is a service's copy of the data, as of a revision; 0 before it has one. It is for one
// goroutine at a time.
type dataCopy struct {
	client   *clientv3.Client
	prefix   string
	values   map[string][]byte
	revision int64
}

// load reads the data at one revision, page by page.
func (c *dataCopy) load(ctx context.Context) error {
	values, from, end, at := map[string][]byte{}, c.prefix, clientv3.GetPrefixRangeEnd(c.prefix), int64(0)
	for {
		page, err := c.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(at))
		if err != nil {
			return err
		}
		if at == 0 {
			at = page.Header.Revision
		}
		for _, kv := range page.Kvs {
			values[string(kv.Key)] = kv.Value
			from = string(kv.Key) + "\x00"
		}
		if !page.More {
			c.values, c.revision = values, at
			return nil
		}
	}
}

// catchUp makes the copy as new as the data are now. Each writer puts the key "last", whose revision
// is therefore that of the newest write.
func (c *dataCopy) catchUp(ctx context.Context) error {
	last, err := c.client.Get(ctx, c.prefix+"last")
	if err != nil || len(last.Kvs) == 0 || last.Kvs[0].ModRevision <= c.revision {
		return err
	}
	return c.follow(ctx, last.Kvs[0].ModRevision)
}

// follow applies changes up to those of a revision; 0: until ctx ends.
func (c *dataCopy) follow(ctx context.Context, until int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := c.client.Watch(ctx, c.prefix, clientv3.WithPrefix(), clientv3.WithRev(c.revision+1))
	for resp := range changes {
		if err := resp.Err(); err != nil {
			return err
		}
		for _, e := range resp.Events {
			c.revision = e.Kv.ModRevision
			if e.Type == clientv3.EventTypeDelete {
				delete(c.values, string(e.Kv.Key))
			} else {
				c.values[string(e.Kv.Key)] = e.Kv.Value
			}
		}
		if until > 0 && c.revision >= until {
			return nil
		}
	}
	return context.Cause(ctx)
}
