// Command resume is a leader that is restarted, for example for an upgrade, without giving up its
// leadership: it leaves its lease to its successor on the same machine, which uses the same lease,
// key and token again.
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

// state is what a program keeps on its disk.
type state struct {
	lease clientv3.LeaseID
	key   string
	rev   int64
}

func main() {
	if err := play(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func play(name, endpoints string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kept, err := before(ctx, name, endpoints)
	if err != nil {
		return err
	}
	return afterwards(ctx, name, endpoints, kept)
}

func dial(endpoints string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoints, ",")})
}

// before leads, and ends without resigning.
func before(ctx context.Context, name, endpoints string) (state, error) {
	cli, err := dial(endpoints)
	if err != nil {
		return state{}, err
	}
	defer func() { _ = cli.Close() }()
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
func afterwards(ctx context.Context, name, endpoints string, kept state) error {
	cli, err := dial(endpoints)
	if err != nil {
		return err
	}
	defer func() { _ = cli.Close() }()
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
