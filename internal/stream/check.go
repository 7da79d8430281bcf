package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

var (
	// errSilent ends a stream that may have missed a change.
	errSilent = fmt.Errorf("%w: the stream does not show what a majority has committed", eldest.ErrUnavailable)
	// ErrBack ends a stream that has shown revisions that do not exist any more: it would report
	// nothing until the same revisions come again.
	ErrBack = errors.New("the revision of etcd went back: was it restored from a backup?")
)

// check detects, at intervals, that the stream shows nothing although it should: its member is
// behind, or its messages are lost on the way. It returns the reason, or the cause of ctx.
//
// A majority is asked for the present revision. Then one more watch is opened on the stream; it
// begins at the revision that the stream's member has reached. If the majority does not answer
// either, the stream is not at fault. (A progress request would check whether each single watch is
// in sync. etcd does not answer it while one watch waits for a future revision, as the watch of a
// key that was just written does; and etcd's gRPC proxy never answers it.)
func (s *Stream) check(ctx context.Context) error {
	if s.cfg.Revision == nil || s.cfg.Check <= 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for retry.Sleep(ctx, retry.Spread(s.cfg.Check, s.cfg.Check/10)) == nil {
		key, newest := s.state()
		if key == "" {
			continue
		}
		once, cancel := context.WithTimeout(ctx, s.cfg.Patience)
		at, err := s.cfg.Revision(once, key)
		cancel()
		switch {
		case err != nil:
		case at < newest:
			return ErrBack
		case !s.reaches(ctx, key, at):
			return errSilent
		}
	}
	return context.Cause(ctx)
}

// reaches reports whether the stream's member reaches a revision in time.
func (s *Stream) reaches(ctx context.Context, key string, at int64) bool {
	patience, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	for {
		told := make(chan Change, 1)
		w := s.Watch(Request{Key: key, Deletions: true, Checked: true}, func(c Change) {
			select {
			case told <- c:
			default: // the changes of the key do not matter here
			}
		})
		var c Change
		select {
		case c = <-told:
		case <-patience.Done():
		}
		w.Stop()
		switch {
		case ctx.Err() != nil, c.Began >= at, c.Err != nil: // a refusal shows that etcd answers
			return true
		case retry.Sleep(patience, s.cfg.Patience/10) != nil:
			return ctx.Err() != nil
		}
	}
}
