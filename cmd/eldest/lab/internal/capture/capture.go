package capture

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// MaxMessages is the maximum number of messages that are kept for output that can only be written
// at the end: the normal form and diagrams. Longer ones would be unreadable.
const MaxMessages = 20_000

// ErrTooLong is returned by Close when there were more than MaxMessages.
var ErrTooLong = errors.New("the trace is too long to keep")

// Config configures a capture. The zero value starts an etcd and keeps all messages.
type Config struct {
	// Endpoints are those of an existing etcd; if there are none, Start starts an etcd. TLS is used
	// to reach them; see wiretap.Config.
	Endpoints []string
	TLS       *tls.Config
	// Filter selects the messages that are kept and passed to Tell; nil selects all. Tell, if not
	// nil, is called with each message when it arrives; it must return quickly.
	Filter func(wiretap.Message) bool
	Tell   func(wiretap.Message)
	// Forget means that no messages are kept.
	Forget bool
}

// Capture is a running capture, made by Start and ended by Close.
type Capture struct {
	*wiretap.Proxy
	cfg  Config
	etcd *devcluster.Cluster // nil if the etcd existed before

	mu       sync.Mutex
	messages []wiretap.Message
	dropped  bool
	frozen   bool
	cut      map[string]bool // lanes
	more     chan struct{}   // closed, and replaced, with each message
}

// Start starts etcd, if Config has no endpoints, and the wiretap. It blocks until etcd serves
// requests or ctx ends. The caller must Close the capture.
func Start(ctx context.Context, cfg Config) (*Capture, error) {
	c := &Capture{cfg: cfg, more: make(chan struct{}), cut: map[string]bool{}}
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

func (c *Capture) record(m *wiretap.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Lost = c.cut[m.Lane] && (m.Kind == wiretap.Request || m.Kind == wiretap.Answer)
	if c.frozen || c.cfg.Filter != nil && !c.cfg.Filter(*m) {
		return
	}
	if c.cfg.Tell != nil {
		c.cfg.Tell(*m)
	}
	switch {
	case c.cfg.Forget:
	case len(c.messages) == MaxMessages:
		c.dropped = true
	default:
		c.messages = append(c.messages, *m)
		close(c.more)
		c.more = make(chan struct{})
	}
}

// Cut partitions a lane from etcd until Mend: what it sends and what is sent to it is lost, while its
// connections stay open.
func (c *Capture) Cut(lane string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[lane] = true
}

// Mend ends a Cut, for new calls: one that lost a message never gets an answer.
func (c *Capture) Mend(lane string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cut, lane)
}

// Freeze ends the recording. Messages are forwarded as before.
func (c *Capture) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

// Await blocks until seen returns true for the messages so far, and returns ctx's cause if ctx ends
// first. seen must not keep or change the messages. The capture must keep messages.
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

// Close ends the wiretap, and the etcd that Start started, and returns the messages.
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
