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

// pause is the time between two attempts: a thousand clients of a leader that crashed should not
// keep the next one busy with attempts.
const pause = 200 * time.Millisecond

// counter counts under a key that no other client writes.
type counter struct {
	service  kvpb.KVClient
	election string // of the service
	key      string
	timeout  time.Duration
}

// count is the value of the key, and its revision; 0 and 0 if there is no key.
type count struct {
	n        int
	revision int64
}

// read reads the count. A read may be repeated, whatever happened to the previous attempt. It ends
// with ctx, or with an error that another attempt will not change.
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

// advance counts one further, exactly once, however many leaders crash meanwhile. It ends with ctx,
// or with an error that another attempt will not change.
//
// A request of which nothing was applied is sent again unchanged. After any other failure it is
// unknown whether the request was carried out, and it may even be carried out a little later. A
// condition makes another attempt safe: it is on the revision that was read, so only one of all
// attempts can succeed, and a read shows whether one has. An Append, which has no condition, must
// not be sent again here.
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
		case code == codes.FailedPrecondition: // an earlier attempt succeeded, or another client writes this key
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
			return count{}, fmt.Errorf("another client counts under %q: the value is %d after %d", c.key, now.n, from.n)
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
