package natspeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client has one connection.
type client struct {
	timing   timing
	election string // the key of its leader, too
	conn     *nats.Conn
	js       jetstream.JetStream
	bucket   jetstream.KeyValue

	// closing ends the updates of all tenures, and updating waits for them.
	closing  context.Context
	close    context.CancelFunc
	updating sync.WaitGroup
	closed   chan struct{} // closed when the connection is
}

func dial(ctx context.Context, cfg peer.ClientConfig) (_ peer.Client, err error) {
	c := &client{timing: settings[cfg.Setting], election: cfg.Election, closed: make(chan struct{})}
	c.closing, c.close = context.WithCancel(context.Background())
	// All other options are the defaults of nats.go.
	c.conn, err = nats.Connect(strings.Join(cfg.Endpoints, ","), nats.Name(cfg.ID),
		nats.SetCustomDialer(dialer{cfg.Net}), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }))
	if err != nil {
		c.close()
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

// dialer is a nats.CustomDialer.
type dialer struct{ net peer.Network }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nats.DefaultTimeout)
	defer cancel()
	return d.net.Dial(ctx, network, address)
}

// Candidate returns a candidate. All of a client share its connection; each has a watch of its own.
func (c *client) Candidate(id string) (peer.Candidate, error) { return candidate{c, id}, nil }

func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	w, err := c.watch(ctx, c.election)
	if err != nil {
		return err
	}
	defer stop(w)
	last := ""
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.Join(ctx.Err(), errors.New("the watch has ended"))
			case e == nil: // all that was in the bucket has been received
			case e.Operation() != jetstream.KeyValuePut:
				last = "" // a successor may have the same ID
			case string(e.Value()) != last:
				last = string(e.Value())
				leads(last)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch watches a key, or those that match. stop must be called.
func (c *client) watch(ctx context.Context, keys string) (jetstream.KeyWatcher, error) {
	w, err := c.bucket.Watch(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", keys, err)
	}
	return w, nil
}

// stop ends a watch, and blocks until it has ended. The watch blocks while nobody receives.
func stop(w jetstream.KeyWatcher) {
	_ = w.Stop() // the context may have ended it
	for range w.Updates() {
		continue
	}
}

// logKeys are the keys of all entries, or, with the text of one, its key.
func (c *client) logKeys(entry string) string { return "log." + c.election + "." + entry }

// Log reads the keys of the log's entries in the order of the stream. A replica that the watch reads may lack
// the last ones: the stream's leader says how many there are.
func (c *client) Log(ctx context.Context) ([]string, error) {
	for {
		want, err := c.entries(ctx)
		if err != nil {
			return nil, err
		}
		log, err := c.readLog(ctx)
		if err != nil {
			return nil, err
		}
		if uint64(len(log)) >= want {
			return log, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d entries: %w", len(log), want, ctx.Err())
		}
	}
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
	w, err := c.watch(ctx, c.logKeys(">"))
	if err != nil {
		return nil, err
	}
	defer stop(w)
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, errors.Join(ctx.Err(), errors.New("the watch has ended"))
			}
			if e == nil {
				return log, nil
			}
			log = append(log, string(e.Value()))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// subject is a key's subject in the bucket's stream.
func subject(key string) string { return "$KV." + bucket + "." + key }

func (c *client) Guards() []int { return nil }

func (c *client) Close() error {
	c.close()
	c.updating.Wait()
	c.conn.Close()
	<-c.closed
	return nil
}
