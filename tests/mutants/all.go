package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// setting is where and how mutants are played.
type setting struct {
	root, at string
	jobs     int
	timeout  time.Duration
}

// playAll plays the mutants, tells each result as it comes, and returns all of them in
// the order of their names.
func playAll(ctx context.Context, s setting, all []*mutant, tell func(result)) (results []result, err error) {
	temp, err := os.MkdirTemp("", "eldest-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	h := &health{ran: map[proof]*checkup{}}
	var players []*player
	for i := range min(max(s.jobs, 1), len(all)) {
		dir := filepath.Join(temp, strconv.Itoa(i))
		t, err := copyTree(ctx, s.root, filepath.Join(dir, "tree"), s.at)
		if err != nil { // which does not say that it was interrupted
			return nil, errors.Join(context.Cause(ctx), err)
		}
		players = append(players, &player{tree: t, bin: dir, timeout: s.timeout, health: h})
	}
	next := make(chan *mutant)
	var mu sync.Mutex
	var playing sync.WaitGroup
	for _, p := range players {
		playing.Go(func() {
			for m := range next {
				r := p.play(ctx, m)
				mu.Lock()
				results = append(results, r)
				tell(r)
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	playing.Wait()
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	return results, context.Cause(ctx)
}
