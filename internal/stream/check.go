package stream

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/internal/retry"
)

var (
	// errSilent ends a stream that may have missed something.
	errSilent = errors.New("the stream does not show what a majority has agreed on")
	// errBack ends a stream that has shown what is not true any more: it would be silent until the
	// same revisions come again.
	errBack = errors.New("the history of etcd went back: restored from a backup?")
)

// check finds a stream that is silent although it should not be: its member is behind, or
// something on the way swallows what it sends. A majority is asked for the present revision,
// and then the stream for its progress until it has reached that revision, which it says
// only when all of its watches are served up to it. Where the majority does not answer
// either, the stream is not at fault.
type check struct {
	stream *Stream
	// progress has the newest revision that the stream has reached.
	progress chan int64
}

// heard notes progress. It does not block.
func (c *check) heard(resp *pb.WatchResponse) {
	if resp.WatchId != -1 || resp.Created {
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
	cfg := &c.stream.cfg
	if cfg.Revision == nil || cfg.Check <= 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for retry.Sleep(ctx, retry.Spread(cfg.Check, cfg.Check/10)) == nil {
		key, newest := c.stream.state()
		if key == "" {
			continue
		}
		once, cancel := context.WithTimeout(ctx, cfg.Patience)
		at, err := cfg.Revision(once, key)
		cancel()
		switch {
		case err != nil:
		case at < newest:
			return errBack
		case !c.reaches(ctx, out, at):
			return errSilent
		}
	}
	return context.Cause(ctx)
}

// reaches asks for the progress of the stream until it has reached a revision.
func (c *check) reaches(ctx context.Context, out *sender, at int64) bool {
	patience := time.NewTimer(c.stream.cfg.Patience)
	defer patience.Stop()
	again := time.NewTicker(max(c.stream.cfg.Patience/10, time.Millisecond))
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
