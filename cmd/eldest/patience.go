package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// waitNotice tells on stderr that a command waits for etcd, and that the waiting
// is over. Silence would look like a hang.
type waitNotice struct {
	to   *cobra.Command
	conn *connFlags
	// say writes the line; nil writes it to the command's stderr.
	say func(string)

	mu   sync.Mutex
	told time.Time // when the last line was written; zero while etcd answers
}

// repeatNotice is how often the reminder comes.
const repeatNotice = 30 * time.Second

// answered is told the outcome of each attempt.
func (w *waitNotice) answered(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	say := w.say
	if say == nil {
		say = toStderr(w.to)
	}
	switch {
	case errors.Is(err, context.Canceled):
		// The command is ending.
	case err != nil && silent(err) && time.Since(w.told) > repeatNotice:
		w.told = time.Now()
		say(fmt.Sprintf("waiting for etcd at %s (%s); SIGINT ends the waiting", w.conn.addresses(), w.conn.why(err)))
	case err == nil && !w.told.IsZero():
		w.told = time.Time{}
		say("etcd answers")
	}
}

// pause is the time between two attempts to log in. Each makes etcd check a
// password, which is slow on purpose.
const pause = 500 * time.Millisecond

// dialPatiently is dial, again and again while etcd is away, for commands that
// are meant to wait.
func (f *connFlags) dialPatiently(ctx context.Context, wait *waitNotice) (*clientv3.Client, error) {
	for {
		client, err := f.dial(ctx)
		if err == nil {
			return client, nil
		}
		// A wrong password does not get better by waiting.
		if ctx.Err() != nil || !silent(err) {
			return nil, err
		}
		wait.answered(err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
