package stream

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/internal/retry"
)

// errSilent ends a stream that may have missed something.
var errSilent = errors.New("the stream does not show what a majority has agreed on")

// check finds a stream that is silent although it should not be: its member is behind, or
// something on the way swallows what it sends. A majority is asked for the present revision,
// and then the stream for its progress until it has reached that revision, which it says
// only when all of its watches are served up to it. Where the majority does not answer
// either, the stream is not at fault.
type check struct {
	cfg Config
	// progress has the newest revision that the stream has reached.
	progress chan int64
}

func newCheck(cfg Config) *check { return &check{cfg: cfg, progress: make(chan int64, 1)} }

// heard notes progress. It does not block.
func (c *check) heard(resp *pb.WatchResponse) {
	if resp.WatchId != -1 {
		return
	}
	select {
	case <-c.progress:
	default:
	}
	c.progress <- resp.Header.GetRevision()
}

// run checks until ctx ends or a check fails.
func (c *check) run(ctx context.Context, out *sender) error {
	if c.cfg.Revision == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for retry.Sleep(ctx, c.cfg.Check) == nil {
		once, cancel := context.WithTimeout(ctx, c.cfg.Patience)
		at, err := c.cfg.Revision(once)
		cancel()
		if err == nil && !c.reaches(ctx, out, at) {
			return errSilent
		}
	}
	return context.Cause(ctx)
}

// reaches asks for the progress of the stream until it has reached a revision.
func (c *check) reaches(ctx context.Context, out *sender, at int64) bool {
	patience := time.NewTimer(c.cfg.Patience)
	defer patience.Stop()
	again := time.NewTicker(max(c.cfg.Patience/10, time.Millisecond))
	defer again.Stop()
	for {
		out.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
		select {
		case revision := <-c.progress:
			if revision >= at {
				return true
			}
		case <-patience.C:
			return false
		case <-ctx.Done():
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return true
		}
	}
}
