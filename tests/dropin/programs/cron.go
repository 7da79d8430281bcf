package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// cron is a cron that runs on several machines, and whose jobs must run once. The machine that leads
// runs them; each run is recorded in a transaction that only the leader can commit.
func cron(ctx context.Context, cli *clientv3.Client, name string) error {
	const machines = 3
	if err := abreast(machines, func() error { return machine(ctx, cli, name) }); err != nil {
		return err
	}
	resp, err := cli.Get(ctx, name+"-runs/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	fmt.Printf("%d runs\n", len(resp.Kvs))
	for _, kv := range resp.Kvs {
		fmt.Printf("%s version %d\n", strings.TrimPrefix(string(kv.Key), name), kv.Version)
	}
	return nil
}

// machine campaigns, runs its jobs and leaves.
func machine(ctx context.Context, cli *clientv3.Client, name string) error {
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(10), concurrency.WithContext(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	election := concurrency.NewElection(session, name)
	if err := election.Campaign(ctx, fmt.Sprintf("%x", session.Lease())); err != nil {
		return err
	}
	for range 4 { // runs in its tenure
		select {
		case <-session.Done():
			return errors.New("the session has expired")
		default:
		}
		if err := run(ctx, cli, election, name); err != nil {
			return err
		}
	}
	return election.Resign(ctx)
}

// run records the next run if this machine leads.
func run(ctx context.Context, cli *clientv3.Client, election *concurrency.Election, name string) error {
	resp, err := cli.Get(ctx, name+"-runs/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	next := fmt.Sprintf("%s-runs/%03d", name, resp.Count)
	txn, err := cli.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(election.Key()), "=", election.Rev())).
		Then(clientv3.OpPut(next, "done")).Commit()
	if err == nil && !txn.Succeeded {
		err = errors.New("we do not lead any more")
	}
	return err
}
