// Command cron is a cron that runs on several machines, and whose jobs must run once. The machine
// that leads runs them; each run is recorded in a transaction that only the leader can commit.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	machines = 3
	runs     = 4 // of each machine in its tenure
)

func main() {
	if err := play(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func play(name, endpoints string) error {
	cli, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoints, ",")})
	if err != nil {
		return err
	}
	defer func() { _ = cli.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	failed := make(chan error, machines)
	for range machines {
		go func() { failed <- machine(ctx, cli, name) }()
	}
	for range machines {
		if err := <-failed; err != nil {
			return err
		}
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
	for range runs {
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
