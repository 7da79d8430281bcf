// Command observed leads once, and prints what a collector and the spans say of it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
	"github.com/eldest-io/eldest/traces"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := lead(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func lead(ctx context.Context, endpoint string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return err
	}
	defer client.Close()
	numbers, exporter := metrics.New("observed"), tracetest.NewInMemoryExporter()
	registry := prometheus.NewRegistry()
	registry.MustRegister(numbers)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	both := hooks.Tee(numbers.Hooks(), traces.Hooks(provider, "observed"))

	session, err := lease.Open(ctx, lease.Config{Lease: client, Options: lease.Options{Hooks: both.Session}})
	if err != nil {
		return err
	}
	candidate, err := election.New(election.Config{
		Election: "observed", Session: session, KV: client, Watcher: client,
		Options: election.Options{Hooks: both.Candidate},
	})
	if err != nil {
		return err
	}
	numbers.AttachCandidate(session, candidate)
	leadership, err := candidate.Campaign(ctx)
	if err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() == "eldest_token" {
			fmt.Println("the collector shows the token:", int64(family.GetMetric()[0].GetGauge().GetValue()) == int64(leadership.Token()))
		}
	}
	if err := leadership.Resign(ctx); err != nil {
		return err
	}
	if err := candidate.Close(ctx); err != nil { // waits for the hooks
		return err
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println("span", span.Name)
	}
	return session.Close(ctx)
}
