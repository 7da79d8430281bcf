package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

var (
	// errSilent ends a stream that may have missed something.
	errSilent = fmt.Errorf("%w: the stream does not show what a majority has agreed on", eldest.ErrUnavailable)
	// ErrBack is the end of a stream that has shown what is not true any more: it would be silent until the
	// same revisions come again.
	ErrBack = errors.New("the history of etcd went back: restored from a backup?")
)

// check finds out, now and then, that the stream is silent although it should not be: its member is
// behind, or something on the way swallows what it sends. It returns why, or the cause of ctx.
//
// A majority is asked for the present revision, and then the stream for one more watch, which begins
// at the revision that its member has reached. Where the majority does not answer either, the
// stream is not at fault. (A progress request would ask whether each single watch is in step.
// etcd does not answer it while one of them waits for a revision that is not there yet, as that
// of a key that was just written does; and its proxy never does.)
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
			default: // what has happened to the key is no news here
			}
		})
		var c Change
		select {
		case c = <-told:
		case <-patience.Done():
		}
		w.Stop()
		switch {
		case ctx.Err() != nil, c.Began >= at, c.Err != nil: // one that is refused shows that etcd answers
			return true
		case retry.Sleep(patience, s.cfg.Patience/10) != nil:
			return ctx.Err() != nil
		}
	}
}
