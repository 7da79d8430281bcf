package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

// There is one bubble at a time in a process (package rig), so what runs side by side
// runs in processes: the test binary starts itself, with seeds of its own for each.

// job is a range of seeds for one worker process.
type job struct {
	impl  string
	style style
	first int
	count int
}

func (j job) String() string { return fmt.Sprintf("%s-%s-%06d-%d", j.impl, j.style, j.first, j.count) }

// split cuts a range of seeds into jobs.
func split(impl string, st style, from, to, size int) []job {
	var jobs []job
	for ; from < to; from += size {
		jobs = append(jobs, job{impl, st, from, min(size, to-from)})
	}
	return jobs
}

// longest bounds a job: what hangs is a failure.
const longest = 30 * time.Minute

// do runs a job in a process of its own and returns what became of it. The outcomes are
// in file afterwards; a file that is there already is all that is done.
func (j job) do(ctx context.Context, file string) ([]outcome, error) {
	if all, err := load(file); err == nil {
		return all, nil
	}
	part := file + ".part"
	_ = os.Remove(part)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestScenarios$", "-test.timeout=0",
		"-sim.out="+part, "-sim.impl="+j.impl, "-sim.style="+string(j.style),
		fmt.Sprintf("-sim.first=%d", j.first), fmt.Sprintf("-sim.seeds=%d", j.count))
	// One thread is a tenth cheaper than two, and goroutines that really run at once
	// are another way of interleaving: so a few processes have two.
	threads := 1
	if j.first/j.count%5 == 4 {
		threads = 2
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", threads),
		// Goroutines that begin with stacks as large as they have been are a tenth cheaper.
		"GODEBUG="+strings.Trim(os.Getenv("GODEBUG")+",adaptivestackstart=1", ","))
	said, err := cmd.CombinedOutput()
	if err == nil {
		err = os.Rename(part, file)
	}
	all, broken := load(file)
	if err = errors.Join(err, broken); err != nil {
		done, _ := load(part)
		return nil, fmt.Errorf("%s ended after %d scenarios: %w\n%s", j, len(done), err, tail(said, 8<<10))
	}
	if len(all) != j.count {
		return nil, fmt.Errorf("%s: %d outcomes", j, len(all))
	}
	return all, nil
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// load reads the outcomes in a file.
func load(file string) ([]outcome, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []outcome
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 64<<20) // a report can be long
	for lines.Scan() {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return all, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, o)
	}
	return all, lines.Err()
}

// share runs jobs side by side and calls done after each, one at a time; it stops
// starting new ones when done returns false.
func share(ctx context.Context, dir string, jobs []job, done func(job, []outcome, error) bool) {
	var mu sync.Mutex
	next, stop := 0, false
	take := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if stop || next == len(jobs) || ctx.Err() != nil {
			return job{}, false
		}
		next++
		return jobs[next-1], true
	}
	var all sync.WaitGroup
	for range max(1, *procs) {
		all.Go(func() {
			for j, ok := take(); ok; j, ok = take() {
				outcomes, err := j.do(ctx, filepath.Join(dir, j.String()+".jsonl"))
				mu.Lock()
				stop = !done(j, outcomes, err) || stop
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// work is what a worker process does: it runs its scenarios one after another and
// appends what became of each to a file. It judges nothing: that is for whoever
// started it.
func work(t *testing.T, impl contender.Contender, st style, from, to int) {
	f, err := os.OpenFile(*out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	enc := json.NewEncoder(f)
	for n := from; n < to; n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			begun := time.Now()
			r := run(t, impl, st.drawFor(impl, uint64(n)))
			require.NoError(t, enc.Encode(r.outcome(time.Since(begun), faultless(impl))))
		})
	}
}
