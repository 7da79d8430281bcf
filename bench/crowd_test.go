package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Every observer sees both leaders, on either kind of host, whoever tells them.
func TestCrowdSeesTheLeaders(t *testing.T) {
	near, err := newLocal(siteAt(etcdtest.Shared(t).Endpoints()))
	require.NoError(t, err)
	defer func() { require.NoError(t, near.Close()) }()
	for where, h := range map[string]Host{"local": near, "worker": testWorker(t)} {
		for _, name := range []string{"eldest", "concurrency", "herd"} {
			t.Run(where+"/"+name, func(t *testing.T) {
				ctx := testContext(t)
				election := "crowd-" + where + "-" + name
				first, leader, won := stand(t, near, name, election, time.Minute)
				require.NoError(t, (<-won).err)
				c, err := h.Observe(ctx, name, election, CrowdSize{Observers: 20, Slow: 5})
				require.NoError(t, err)
				_, err = c.Await(ctx, leader.Key())
				require.NoError(t, err)

				second, next, won := stand(t, near, name, election, time.Minute)
				stands(t, election, 2)
				begun := time.Now()
				require.NoError(t, leader.Resign(ctx))
				require.NoError(t, (<-won).err)
				seen, err := c.Await(ctx, next.Key())
				require.NoError(t, err)
				require.False(t, seen.First.Before(begun.Add(-time.Millisecond)))
				require.False(t, seen.Last.Before(seen.First))
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
				c.Close(ctx)
			})
		}
	}
}

// script is a sight whose observers are told what the test says.
type script struct {
	feeds []chan string
	next  atomic.Int32
	deaf  error
}

func (s *script) Feed(context.Context) (contender.Feed, error) {
	if s.deaf != nil {
		return nil, s.deaf
	}

	return scriptFeed(s.feeds[s.next.Add(1)-1]), nil
}

func (s *script) Close(context.Context) {}

type scriptFeed <-chan string

func (f scriptFeed) Next(ctx context.Context) (string, error) {
	select {
	case key, ok := <-f:
		if !ok {
			return "", errors.New("broken off")
		}
		return key, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Await is for the last: one that has not seen the key holds it up, one that sees it
// twice counts once, and one that fails ends it.
func TestCrowdWaitsForTheLast(t *testing.T) {
	ctx := testContext(t)
	a, b := make(chan string, 3), make(chan string, 3)
	a <- "A"
	b <- "A"
	c, err := gather(ctx, &script{feeds: []chan string{a, b}}, CrowdSize{Observers: 2})
	require.NoError(t, err)
	defer c.Close(ctx)
	_, err = c.Await(ctx, "A")
	require.NoError(t, err)

	a <- "B"
	a <- ""
	a <- "B"
	require.Eventually(t, func() bool { return len(a) == 0 }, testTime, time.Millisecond, "the first one is noted by then")
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = c.Await(short, "B")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1 of 2")
	b <- "B"
	_, err = c.Await(ctx, "B")
	require.NoError(t, err)

	close(b)
	_, err = c.Await(ctx, "C")
	require.ErrorContains(t, err, "broken off")
}

// An observer that finds no place fails the whole crowd.
func TestCrowdThatCannotGather(t *testing.T) {
	deaf := errors.New("deaf")
	_, err := gather(testContext(t), &script{deaf: deaf}, CrowdSize{Observers: 3})
	require.ErrorIs(t, err, deaf)
}
