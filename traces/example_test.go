package traces_test

import (
	"context"
	"fmt"
	"log"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/traces"
)

// A tenure and its spans. A program has an exporter that sends the spans to a backend.
func ExampleHooks() {
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

	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	told := traces.Hooks(provider, "nightly-jobs")

	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{Hooks: told.Session}})
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
	for _, span := range exporter.GetSpans() {
		for _, event := range span.Events {
			fmt.Println(span.Name, event.Name)
		}
	}
	// Output:
	// eldest.campaign registered
	// eldest.campaign won
	// eldest.tenure ended
}
