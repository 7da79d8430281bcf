package capture

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// MaxMessages is how many messages are kept at most, for what can only be written at the
// end: the normal form and diagrams. Nobody reads longer ones.
const MaxMessages = 20_000

// ErrTooLong is returned by Close when there were more than MaxMessages.
var ErrTooLong = errors.New("the trace is too long to be kept")

// Config says what is captured. The zero value is an etcd of its own, of which everything
// is kept.
type Config struct {
	// Endpoints are those of an etcd that is there; none: an etcd of its own. TLS is how
	// they are reached; see wiretap.Config.
	Endpoints []string
	TLS       *tls.Config
	// Filter picks what is kept and told; nil is everything. Tell is called with each
	// message as it comes, if it is not nil; it must be quick.
	Filter func(wiretap.Message) bool
	Tell   func(wiretap.Message)
	// Forget says that nothing is kept.
	Forget bool
}

// Capture is running. Made by Start, ended by Close.
type Capture struct {
	*wiretap.Proxy
	cfg  Config
	etcd *devcluster.Cluster // nil if it is somebody else's

	mu       sync.Mutex
	messages []wiretap.Message
	dropped  bool
	frozen   bool
	more     chan struct{} // closed, and replaced, with each message
}

// Start starts etcd, if it is to, and the wiretap. It blocks until etcd serves requests or
// ctx ends. The caller must Close the capture.
func Start(ctx context.Context, cfg Config) (*Capture, error) {
	c := &Capture{cfg: cfg, more: make(chan struct{})}
	if len(cfg.Endpoints) == 0 {
		etcd, err := devcluster.Start(ctx, devcluster.Config{})
		if err != nil {
			return nil, err
		}
		c.etcd, cfg.Endpoints = etcd, etcd.Endpoints()
	}
	tap, err := wiretap.Start(wiretap.Config{Endpoints: cfg.Endpoints, TLS: cfg.TLS, Record: c.record})
	if err != nil {
		if c.etcd != nil {
			err = errors.Join(err, c.etcd.Close())
		}
		return nil, err
	}
	c.Proxy = tap
	return c, nil
}

func (c *Capture) record(m wiretap.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen || c.cfg.Filter != nil && !c.cfg.Filter(m) {
		return
	}
	if c.cfg.Tell != nil {
		c.cfg.Tell(m)
	}
	switch {
	case c.cfg.Forget:
	case len(c.messages) == MaxMessages:
		c.dropped = true
	default:
		c.messages = append(c.messages, m)
		close(c.more)
		c.more = make(chan struct{})
	}
}

// Freeze ends the recording. Messages pass as before.
func (c *Capture) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

// Await blocks until the messages so far are what is waited for, and returns ctx's cause if
// that ends first. seen must not keep or change them. It needs a capture that keeps them.
func (c *Capture) Await(ctx context.Context, seen func([]wiretap.Message) bool) error {
	for {
		c.mu.Lock()
		done, more := seen(c.messages), c.more
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the wiretap, and the etcd that is its own, and returns what was captured.
func (c *Capture) Close() ([]wiretap.Message, error) {
	c.Proxy.Close()
	var err error
	if c.etcd != nil {
		err = c.etcd.Close()
	}
	if c.dropped {
		err = errors.Join(err, ErrTooLong)
	}
	return c.messages, err
}
