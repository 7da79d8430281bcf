package hooks_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// A log of all events, and beside it a hook of the program's own.
func ExampleTee() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, stop := etcdtest.ForExample()
	defer stop()

	told := hooks.Tee(hooks.Log(brief(), "nightly-jobs"), hooks.Set{
		Candidate: election.Hooks{Ended: func(e election.EndedEvent) { fmt.Println("the end:", hooks.Cause(e.Cause)) }},
	})
	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{TTL: time.Minute, Hooks: told.Session}})
	if err != nil {
		log.Fatal(err)
	}
	candidate, err := election.New(election.Config{
		Election: "nightly-jobs", Session: session, KV: client, Watcher: client,
		Options: election.Options{Hooks: told.Candidate},
	})
	if err != nil {
		log.Fatal(err)
	}
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := leadership.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	if err := candidate.Close(ctx); err != nil { // waits for the hooks
		log.Fatal(err)
	}
	if err := session.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// level=INFO msg="session opened" election=nightly-jobs
	// level=INFO msg="candidate registered" election=nightly-jobs
	// level=INFO msg="leadership won" election=nightly-jobs
	// level=INFO msg="leadership ended" election=nightly-jobs reason=resigned
	// the end: resigned
	// level=INFO msg="session ended" election=nightly-jobs reason=closed
}

// brief returns a logger that leaves out attributes that differ each time.
func brief() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.LevelKey, slog.MessageKey, "election", "reason":
				return a
			}
			return slog.Attr{}
		},
	}))
}
