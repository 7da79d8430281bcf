package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// failover is a worker with a hot standby. Clients of the service follow the leader by observing the
// election; the worker crashes, and the standby takes over when its lease has expired.
func failover(ctx context.Context, cli *clientv3.Client, name string) error {
	watching, err := concurrency.NewSession(cli, concurrency.WithTTL(30))
	if err != nil {
		return err
	}
	defer func() { _ = watching.Close() }()
	observed := concurrency.NewElection(watching, name)
	if _, err := observed.Leader(ctx); !errors.Is(err, concurrency.ErrElectionNoLeader) {
		return fmt.Errorf("another candidate leads first: %w", err)
	}
	leaders := observed.Observe(ctx)

	worker, err := concurrency.NewSession(cli, concurrency.WithTTL(5))
	if err != nil {
		return err
	}
	election := concurrency.NewElection(worker, name)
	if err := election.Campaign(ctx, "10.0.0.1:80"); err != nil {
		return err
	}
	fmt.Println("clients go to", value(leaders))
	if err := election.Proclaim(ctx, "10.0.0.1:8080"); err != nil {
		return err
	}
	fmt.Println("clients go to", value(leaders))

	took := make(chan error, 1)
	standby, err := concurrency.NewSession(cli, concurrency.WithTTL(30))
	if err != nil {
		return err
	}
	second := concurrency.NewElection(standby, name)
	go func() { took <- second.Campaign(ctx, "10.0.0.2:80") }()

	select {
	case err := <-took:
		return fmt.Errorf("the standby leads beside the worker: %w", err)
	case <-time.After(6 * time.Second): // longer than a TTL
	}
	worker.Orphan() // the worker crashes: its lease is not renewed any more
	<-worker.Done()
	if err := <-took; err != nil {
		return err
	}
	fmt.Println("clients go to", value(leaders))
	if err := election.Proclaim(ctx, "10.0.0.1:80"); !errors.Is(err, concurrency.ErrElectionNotLeader) {
		return fmt.Errorf("the worker thinks that it leads: %w", err)
	}
	resp, err := observed.Leader(ctx)
	if err != nil {
		return err
	}
	fmt.Println("the leader is", string(resp.Kvs[0].Value), string(resp.Kvs[0].Key) == second.Key())
	if err := second.Resign(ctx); err != nil {
		return err
	}
	if err := standby.Close(); err != nil {
		return err
	}
	_, err = observed.Leader(ctx)
	fmt.Println("then:", err)
	return nil
}

func value(leaders <-chan *clientv3.GetResponse) string {
	resp, ok := <-leaders
	if !ok {
		return "nowhere"
	}
	return string(resp.Kvs[0].Value)
}
