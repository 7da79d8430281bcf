package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// state is what the leader keeps on its disk.
type state struct {
	lease clientv3.LeaseID
	key   string
	rev   int64
}

// resume is a leader that is restarted, for example for an upgrade, without giving up its leadership:
// it leaves its lease to its successor on the same machine, which uses the same lease, key and token
// again.
func resume(ctx context.Context, cli *clientv3.Client, name string) error {
	kept, err := before(ctx, cli, name)
	if err != nil {
		return err
	}
	successor, err := clientv3.New(clientv3.Config{Endpoints: cli.Endpoints()})
	if err != nil {
		return err
	}
	defer func() { _ = successor.Close() }()
	return afterwards(ctx, successor, name, kept)
}

// before leads, and ends without resigning.
func before(ctx context.Context, cli *clientv3.Client, name string) (state, error) {
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(20))
	if err != nil {
		return state{}, err
	}
	election := concurrency.NewElection(session, name)
	if err := election.Campaign(ctx, "version 1"); err != nil {
		return state{}, err
	}
	fmt.Println("leads with its own key:", election.Key() == fmt.Sprintf("%s/%x", name, session.Lease()))
	fmt.Println("token is the header's revision:", election.Header().Revision == election.Rev())
	session.Orphan()
	return state{session.Lease(), election.Key(), election.Rev()}, nil
}

// afterwards continues the leadership that before has left.
func afterwards(ctx context.Context, cli *clientv3.Client, name string, kept state) error {
	session, err := concurrency.NewSession(cli, concurrency.WithLease(kept.lease))
	if err != nil {
		return err
	}
	election := concurrency.ResumeElection(session, name, kept.key, kept.rev)
	if err := election.Proclaim(ctx, "version 2"); err != nil {
		return err
	}
	// A new handle finds the same key.
	again := concurrency.NewElection(session, name)
	if err := again.Campaign(ctx, "version 3"); err != nil {
		return err
	}
	fmt.Println("the same tenure:", again.Key() == kept.key, again.Rev() == kept.rev)
	resp, err := again.Leader(ctx)
	if err != nil {
		return err
	}
	fmt.Println(string(resp.Kvs[0].Value), "written", resp.Kvs[0].Version, "times")
	if err := election.Resign(ctx); err != nil {
		return err
	}
	if err := again.Proclaim(ctx, "version 4"); !errors.Is(err, concurrency.ErrElectionNotLeader) {
		return fmt.Errorf("it leads after it has resigned: %w", err)
	}
	fmt.Println("resigned:", election.Key() == "")
	return session.Close()
}
