package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// pause is what lies between two attempts: a thousand clients of a leader that died
// should not keep the next one busy with attempts.
const pause = 200 * time.Millisecond

// counter counts under a key that nobody else writes.
type counter struct {
	service  kvpb.KVClient
	election string // of the service
	key      string
	timeout  time.Duration
}

// count is what the key says, and as of which revision; 0 and 0 if there is no key.
type count struct {
	n        int
	revision int64
}

// read reads the count. Reading may be repeated whatever became of the attempt before.
// It ends with ctx, or with an error that another attempt will not change.
func (c counter) read(ctx context.Context) (count, error) {
	for {
		call, cancel := context.WithTimeout(ctx, c.timeout)
		item, err := c.service.Get(call, &kvpb.GetRequest{Key: c.key})
		cancel()
		switch status.Code(err) {
		case codes.OK:
			n, err := strconv.Atoi(string(item.GetValue()))
			if err != nil {
				return count{}, fmt.Errorf("the key %q: %w", c.key, err)
			}
			return count{n: n, revision: item.GetRevision()}, nil
		case codes.NotFound:
			return count{}, nil
		case codes.Unavailable, codes.DeadlineExceeded:
			if err := c.again(ctx, err); err != nil {
				return count{}, err
			}
		default:
			return count{}, err
		}
	}
}

// advance counts one further, exactly once, however many leaders die meanwhile. It ends
// with ctx, or with an error that another attempt will not change.
//
// A request of which nothing was applied is sent again as it is. Of any other failure
// nobody can say whether it was carried out, and it may even be so a little later. What
// makes another attempt safe is a condition: it is on the revision that was read, so of
// all attempts one can succeed, and reading tells whether one has. An Append, which has
// no condition, must not be sent again here.
func (c counter) advance(ctx context.Context, from count) (count, error) {
	for {
		call, cancel := context.WithTimeout(ctx, c.timeout)
		put, err := c.service.Put(call, &kvpb.PutRequest{
			RequestId: rand.Text(), Key: c.key, Value: []byte(strconv.Itoa(from.n + 1)),
			ExpectedRevision: &from.revision,
		})
		cancel()
		if err == nil {
			return count{n: from.n + 1, revision: put.GetReceipt().GetRevision()}, nil
		}
		lost, ok := curator.LostLeadership(err, c.election)
		switch code := status.Code(err); {
		case ok && lost.GetNothingApplied():
			if err := c.again(ctx, err); err != nil {
				return count{}, err
			}
			continue
		case code == codes.FailedPrecondition: // by an attempt before, or it is not our key
		case code == codes.Unavailable, code == codes.DeadlineExceeded:
			if err := c.again(ctx, err); err != nil {
				return count{}, err
			}
		default:
			return count{}, err
		}
		now, err := c.read(ctx)
		switch {
		case err != nil:
			return count{}, err
		case now.revision == from.revision: // not carried out so far
		case now.n == from.n+1:
			return now, nil // carried out, and the answer was lost
		default:
			return count{}, fmt.Errorf("somebody else counts under %q: it says %d after %d", c.key, now.n, from.n)
		}
	}
}

// again waits before the next attempt; it returns an error if there is to be none.
func (c counter) again(ctx context.Context, because error) error {
	if ctx.Err() == nil {
		log.Printf("trying again: %v", because)
	}
	return sleep(ctx, pause)
}

// sleep returns after d, or with an error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
