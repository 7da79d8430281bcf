package zookeeper

import (
	"context"
	"fmt"
)

// Log reads the entries in the order of their numbers, which is the order of their transactions. It reads what the
// leader of the ensemble has committed: a server is asked to catch up before.
func (c *client) Log(ctx context.Context) ([]string, error) {
	names, err := retry(ctx, c, func() ([]string, error) {
		if _, err := c.conn.Sync(c.log); err != nil {
			return nil, err
		}
		names, _, err := c.conn.Children(c.log)
		return names, err
	})
	if err != nil {
		return nil, fmt.Errorf("zookeeper: log: %w", err)
	}
	bySequence(names)
	entries := make([]string, 0, len(names))
	for _, name := range names {
		data, err := retry(ctx, c, func() ([]byte, error) {
			data, _, err := c.conn.Get(c.log + "/" + name)
			return data, err
		})
		if err != nil {
			return nil, fmt.Errorf("zookeeper: log: %w", err)
		}
		entries = append(entries, string(data))
	}
	return entries, nil
}
