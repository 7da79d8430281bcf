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

// setting is where and how mutants are run.
type setting struct {
	root    string
	jobs    int
	timeout time.Duration
}

// playAll runs the mutants, calls tell with each result as it comes, and returns all of them in the
// order of their names.
func playAll(ctx context.Context, s setting, all []*mutant, tell func(result)) (results []result, err error) {
	temp, err := os.MkdirTemp("", "eldest-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	var players []*player
	for i := range min(max(s.jobs, 1), len(all)) {
		dir := filepath.Join(temp, strconv.Itoa(i))
		t, err := copyTree(ctx, s.root, filepath.Join(dir, "tree"))
		if err != nil { // the error does not show an interruption
			return nil, errors.Join(context.Cause(ctx), err)
		}
		players = append(players, &player{tree: t, bin: dir, timeout: s.timeout})
	}
	next := make(chan []*mutant)
	var mu sync.Mutex
	told := func(r result) {
		mu.Lock()
		defer mu.Unlock()
		results = append(results, r)
		tell(r)
	}
	var playing sync.WaitGroup
	for _, p := range players {
		playing.Go(func() {
			for same := range next {
				p.play(ctx, same, told)
			}
		})
	}
	for _, same := range byProof(all) {
		if ctx.Err() != nil {
			break
		}
		next <- same
	}
	close(next)
	playing.Wait()
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	return results, context.Cause(ctx)
}

// byProof groups the mutants that have the same test, in the order of the first of each.
func byProof(all []*mutant) (groups [][]*mutant) {
	at := map[proof]int{}
	for _, m := range all {
		i, known := at[m.proof]
		if !known {
			i = len(groups)
			at[m.proof], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}
