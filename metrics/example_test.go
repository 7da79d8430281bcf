package metrics_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
)

// One participant, with the hooks of a collector and of a logger. The registry is served by
// promhttp.HandlerFor, as usual.
func ExampleNew() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer etcd.Close()
	client, err := etcd.Dial()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	numbers := metrics.New("nightly-jobs")
	registry := prometheus.NewRegistry()
	registry.MustRegister(numbers)
	warnings := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	told := hooks.Tee(numbers.Hooks(), hooks.Log(warnings, "nightly-jobs"))

	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{Hooks: told.Session}})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	candidate, err := election.New(election.Config{
		Election: "nightly-jobs", Session: session, KV: client, Watcher: client,
		Options: election.Options{Hooks: told.Candidate},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer candidate.Close(ctx)
	numbers.AttachCandidate(session, candidate)
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eldest_state 1 for what this participant is now, 0 for what it is not. Computed at scrape.
# TYPE eldest_state gauge
eldest_state{election="nightly-jobs",state="following"} 0
eldest_state{election="nightly-jobs",state="leading"} 1
eldest_state{election="nightly-jobs",state="unknown"} 0
`), "eldest_state"))
	if err := leadership.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: <nil>
}
