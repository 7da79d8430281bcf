package natspeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client has one connection. Its candidates and observers have a watch each.
type client struct {
	timing   timing
	election string // the key of its leader, too
	conn     *nats.Conn
	js       jetstream.JetStream
	bucket   jetstream.KeyValue
	life     *peer.Life    // the updates of all tenures
	closed   chan struct{} // closed when the connection is
}

func dial(ctx context.Context, cfg peer.ClientConfig) (_ peer.Client, err error) {
	c := &client{timing: settings[cfg.Setting], election: cfg.Election, life: peer.NewLife(), closed: make(chan struct{})}
	// All other options are the defaults of nats.go.
	c.conn, err = nats.Connect(strings.Join(cfg.Endpoints, ","), nats.Name(cfg.ID),
		nats.SetCustomDialer(dialer{cfg.Net}), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }))
	if err != nil {
		c.life.End()
		return nil, err
	}
	c.js, err = jetstream.New(c.conn)
	if err == nil {
		c.bucket, err = c.js.KeyValue(ctx, bucket)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *client) Close() error {
	c.life.End()
	c.conn.Close()
	<-c.closed
	return nil
}

// dialer is a nats.CustomDialer.
type dialer struct{ net peer.Network }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nats.DefaultTimeout)
	defer cancel()
	return d.net.Dial(ctx, network, address)
}

var errWatch = errors.New("the watch has ended")

// next returns the next entry of a watch; nil when all that was in the bucket has been received.
func next(ctx context.Context, w jetstream.KeyWatcher) (jetstream.KeyValueEntry, error) {
	select {
	case e, ok := <-w.Updates():
		if !ok {
			return nil, errors.Join(ctx.Err(), errWatch)
		}
		return e, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stop ends a watch, and blocks until it has ended. The watch blocks while nobody receives.
func stop(w jetstream.KeyWatcher) {
	_ = w.Stop() // the context may have ended it
	for range w.Updates() {
		continue
	}
}

// pause is how long a candidate waits before it tries again to create a key that does not exist.
const pause = 5 * time.Millisecond

// Campaign tries to create the key. If it exists, the candidate watches it, and tries again when it is deleted
// or has expired, until it exists again; and at each interval, in case the watch has missed that. One try would
// not do: the servers refuse it while they replicate the deletion, and it fails if the server that it reads from
// does not know of the deletion yet.
func (c *client) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	if t := c.try(ctx, id); t != nil {
		return t, nil
	}
	w, err := c.bucket.Watch(ctx, c.election)
	if err != nil {
		return nil, err
	}
	defer stop(w)
	queued()
	ticks := time.NewTicker(c.timing.interval)
	defer ticks.Stop()
	var again <-chan time.Time // nil while the key exists
	for exists := false; ; {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, errors.Join(ctx.Err(), errWatch)
			case e != nil:
				exists = e.Operation() == jetstream.KeyValuePut
			}
			if exists {
				again = nil
				continue
			}
		case <-again:
		case <-ticks.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if t := c.try(ctx, id); t != nil {
			return t, nil
		}
		if !exists {
			again = time.After(pause)
		}
	}
}

// try creates the key, and returns nil if that fails, for whatever reason: another try follows.
func (c *client) try(ctx context.Context, id string) *tenure {
	ctx, cancel := context.WithTimeout(ctx, c.timing.request)
	defer cancel()
	revision, err := c.bucket.Create(ctx, c.election, []byte(id))
	if err != nil {
		return nil
	}
	t := &tenure{client: c, id: id, revision: revision}
	t.stop = c.life.Every(c.timing.interval, t.update)
	return t
}

// Observe watches the leader's key.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	w, err := c.bucket.Watch(ctx, c.election)
	if err != nil {
		return err
	}
	defer stop(w)
	for last := ""; ; {
		e, err := next(ctx, w)
		switch {
		case err != nil:
			return err
		case e == nil:
		case e.Operation() != jetstream.KeyValuePut:
			last = "" // a successor may have the same ID
		case string(e.Value()) != last:
			last = string(e.Value())
			leads(last)
		}
	}
}

// logKeys are the keys of all entries, or, with the text of one, its key.
func (c *client) logKeys(entry string) string { return "log." + c.election + "." + entry }

// subject is a key's subject in the bucket's stream.
func subject(key string) string { return "$KV." + bucket + "." + key }

// Log reads the keys of the log's entries in the order of the stream. A replica that the watch reads may lack
// the last ones: the stream's leader says how many there are. It does not answer while the servers change it.
func (c *client) Log(ctx context.Context) (log []string, err error) {
	err = peer.Retry(ctx, func(ctx context.Context) error {
		want, err := c.entries(ctx)
		if err != nil {
			return err
		}
		log, err = c.readLog(ctx)
		if err == nil && uint64(len(log)) < want {
			err = fmt.Errorf("%d of %d entries", len(log), want)
		}
		return err
	})
	return log, err
}

func (c *client) entries(ctx context.Context) (n uint64, err error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject(c.logKeys(">"))))
	if err != nil {
		return 0, err
	}
	for _, count := range info.State.Subjects {
		n += count
	}
	return n, nil
}

func (c *client) readLog(ctx context.Context) (log []string, err error) {
	w, err := c.bucket.Watch(ctx, c.logKeys(">"))
	if err != nil {
		return nil, err
	}
	defer stop(w)
	for {
		e, err := next(ctx, w)
		if err != nil || e == nil {
			return log, err
		}
		log = append(log, string(e.Value()))
	}
}
