package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// digits is the length of the number that ZooKeeper appends to the names of sequential nodes.
const digits = 10

// sequence returns the number in the name of a node, whose texts have the order of the numbers.
func sequence(name string) string { return name[max(0, len(name)-digits):] }

// bySequence sorts names by their numbers.
func bySequence(names []string) {
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
}

// predecessor returns the name before own, "" for the first, and whether own is in the list, which is in order.
func predecessor(names []string, own string) (before string, registered bool) {
	i := slices.Index(names, own)
	if i > 0 {
		before = names[i-1]
	}
	return before, i >= 0
}

// candidates returns the names of the candidates' nodes, in order.
func (c *client) candidates(ctx context.Context) ([]string, error) {
	names, err := retry(ctx, c, func() ([]string, error) {
		names, _, err := c.conn.Children(c.queue)
		return names, err
	})
	bySequence(names)
	return names, err
}

// watch returns the data of a candidate's node and a channel that receives an event when the node is deleted, or the
// session has expired.
func (c *client) watch(ctx context.Context, name string) (id string, deleted <-chan zk.Event, err error) {
	type watched struct {
		data   []byte
		events <-chan zk.Event
	}
	w, err := retry(ctx, c, func() (watched, error) {
		data, _, events, err := c.conn.GetW(c.queue + "/" + name)
		return watched{data, events}, err
	})
	return string(w.data), w.events, err
}

// delete deletes a node, if it exists.
func (c *client) delete(ctx context.Context, path string) error {
	_, err := retry(ctx, c, func() (struct{}, error) { return struct{}{}, c.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// remove deletes a candidate's node in the background, unless its session or the client ends before.
func (c *client) remove(n node) {
	c.goes(func() {
		ctx, cancel := c.within(context.Background())
		defer cancel()
		for c.session.current() == n.session {
			err := c.conn.Delete(n.path, -1)
			if err == nil || refused(err) || pause(ctx, retryPause) != nil {
				return
			}
		}
	})
}
