package concurrency_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A program that was written for etcd's package: only the import differs.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cli, stop := etcdtest.ForExample() // yours is running already
	defer stop()

	session, err := concurrency.NewSession(cli, concurrency.WithTTL(10))
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	election := concurrency.NewElection(session, "/services/backup")
	if err := election.Campaign(ctx, "node-1"); err != nil {
		log.Fatal(err)
	}
	select {
	case <-session.Done():
		log.Fatal("another candidate may lead")
	default:
	}
	leader, err := election.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s leads\n", leader.Kvs[0].Value)
	if err := election.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = election.Leader(ctx)
	fmt.Println(err)

	mutex := concurrency.NewMutex(session, "/locks/backup")
	if err := mutex.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	write, err := cli.Txn(ctx).If(mutex.IsOwner()).Commit()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ours:", write.Succeeded)
	if err := mutex.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mutex.Unlock(ctx))
	// Output:
	// node-1 leads
	// election: no leader
	// ours: true
	// mutex: lock has already been released
}
