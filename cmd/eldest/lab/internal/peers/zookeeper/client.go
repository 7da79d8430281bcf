package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// client is the client of one process: one connection, and one session at a time.
type client struct {
	conn *zk.Conn
	// queue and log are the parents of the candidates' nodes, and of the entries'.
	queue, log string
	life       *peer.Life      // connections and requests
	events     <-chan zk.Event // closed when the library has ended
}

// dial opens a client.
func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	c := &client{queue: "/elections/" + cfg.Election, log: "/logs/" + cfg.Election, life: peer.NewLife()}
	// The library may wait for an answer for ten times its timeout: its connections end with the client.
	connect := func(_, address string, limit time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(c.life, limit)
		defer cancel()
		return c.life.Dial(ctx, cfg.Net, address)
	}
	var err error
	c.conn, c.events, err = zk.Connect(cfg.Endpoints, timings[cfg.Setting].session, zk.WithDialer(connect),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		c.life.End()
		return nil, err
	}
	for c.conn.State() != zk.StateHasSession && ctx.Err() == nil {
		select {
		case <-c.events:
		case <-ctx.Done():
		}
	}
	if err := c.makeParents(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// makeParents creates the parent nodes, which remain.
func (c *client) makeParents(ctx context.Context) error {
	for _, path := range []string{"/elections", "/logs", c.queue, c.log} {
		_, err := request(ctx, c, func() (string, error) {
			path, err := c.conn.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
			if errors.Is(err, zk.ErrNodeExists) {
				err = nil
			}
			return path, err
		})
		if err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	return nil
}

// Close ends the session, which deletes all of its nodes.
func (c *client) Close() error {
	c.conn.Close() // waits for the answer for at most a second
	c.life.End()
	for range c.events {
		continue
	}
	return nil
}

// silent discards the library's log lines: failures are returned as errors as well.
type silent struct{}

func (silent) Printf(string, ...any) {}

// refusals are the errors of requests that servers have answered. Any other error is one of the connection: the
// library also returns those of the operating system.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL, zk.ErrAuthFailed,
	zk.ErrNoChildrenForEphemerals, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
}

// refused reports whether a server has answered with an error.
func refused(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

// once makes a request of the library, which has no context, and returns at the latest when ctx ends.
func once[T any](ctx context.Context, c *client, of func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	c.life.Go(func() {
		v, err := of()
		answers <- answer{v, err}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// retryPause is how long a request that has failed for lack of a connection waits. The library reconnects by itself.
const retryPause = 10 * time.Millisecond

// request makes a request until a server has answered it, or ctx ends. It may be applied more than once.
func request[T any](ctx context.Context, c *client, of func() (T, error)) (T, error) {
	for {
		v, err := once(ctx, c, of)
		if err == nil || refused(err) {
			return v, err
		}
		if ended := retry.Sleep(ctx, retryPause); ended != nil {
			return v, ended
		}
	}
}

// watched is the result of a read that leaves a watch.
type watched[T any] struct {
	value T
	// changed receives an event when what was read has changed, or the session has expired.
	changed <-chan zk.Event
}

// children returns the names of a node's children in the order of their numbers.
func (c *client) children(ctx context.Context, parent string) ([]string, error) {
	return request(ctx, c, func() ([]string, error) {
		names, _, err := c.conn.Children(parent)
		return sorted(names), err
	})
}

// get returns the data of a candidate's node. Its event is the deletion: the data never changes.
func (c *client) get(ctx context.Context, name string) (watched[string], error) {
	return request(ctx, c, func() (watched[string], error) {
		data, _, events, err := c.conn.GetW(c.queue + "/" + name)
		return watched[string]{string(data), events}, err
	})
}

// delete deletes a node, if it exists.
func (c *client) delete(ctx context.Context, path string) error {
	_, err := request(ctx, c, func() (any, error) { return nil, c.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// digits is the length of the number that ZooKeeper appends to the names of sequential nodes.
const digits = 10

// sequence returns the number in the name of a node, whose texts have the order of the numbers.
func sequence(name string) string { return name[max(0, len(name)-digits):] }

// sorted sorts names by their numbers.
func sorted(names []string) []string {
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
	return names
}
