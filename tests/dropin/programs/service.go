package main

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// service answers requests.
type service struct {
	cli  *clientv3.Client
	name string
}

// election returns the election for one request.
func (s service) election(lease clientv3.LeaseID) (*concurrency.Election, error) {
	session, err := concurrency.NewSession(s.cli, concurrency.WithLease(lease))
	if err != nil {
		return nil, err
	}
	session.Orphan()
	return concurrency.NewElection(session, s.name), nil
}

// resumed returns the election for a request that contains the leader's key and token.
func (s service) resumed(lease clientv3.LeaseID, key string, rev int64) (*concurrency.Election, error) {
	session, err := concurrency.NewSession(s.cli, concurrency.WithLease(lease))
	if err != nil {
		return nil, err
	}
	session.Orphan()
	return concurrency.ResumeElection(session, s.name, key, rev), nil
}

// leader asks without a client's lease.
func (s service) leader(ctx context.Context) string {
	e, err := s.election(-1)
	if err != nil {
		return err.Error()
	}
	resp, err := e.Leader(ctx)
	if err != nil {
		return err.Error()
	}
	return string(resp.Kvs[0].Value)
}

// serve elects and locks for clients that have only a lease, as a server in front of etcd does: it
// keeps no state of them, and makes a session for each request that it orphans at once.
func serve(ctx context.Context, cli *clientv3.Client, name string) error {
	s := service{cli, name}
	fmt.Println("at first:", s.leader(ctx))
	one, err := cli.Grant(ctx, 60)
	if err != nil {
		return err
	}
	other, err := cli.Grant(ctx, 60)
	if err != nil {
		return err
	}
	if err := s.elect(ctx, one.ID, other.ID); err != nil {
		return err
	}
	if err := s.lock(ctx, one.ID, other.ID); err != nil {
		return err
	}
	_, err = cli.Revoke(ctx, one.ID)
	return err
}

// elect makes one the leader, which then hands over to the other.
func (s service) elect(ctx context.Context, one, other clientv3.LeaseID) error {
	first, err := s.election(one)
	if err != nil {
		return err
	}
	if err := first.Campaign(ctx, "one"); err != nil {
		return err
	}
	won := make(chan error, 1)
	go func() {
		second, err := s.election(other)
		if err == nil {
			err = second.Campaign(ctx, "the other")
		}
		won <- err
	}()
	proclaiming, err := s.resumed(one, first.Key(), first.Rev())
	if err != nil {
		return err
	}
	if err := proclaiming.Proclaim(ctx, "one, again"); err != nil {
		return err
	}
	fmt.Println("then:", s.leader(ctx))
	resigning, err := s.resumed(one, first.Key(), first.Rev())
	if err != nil {
		return err
	}
	if err := resigning.Resign(ctx); err != nil {
		return err
	}
	if err := <-won; err != nil {
		return err
	}
	fmt.Println("at last:", s.leader(ctx))
	_, err = s.cli.Revoke(ctx, other)
	fmt.Println("without its lease:", s.leader(ctx))
	return err
}

// lock locks for a client that has a lease; it fails for one whose lease does not exist.
func (s service) lock(ctx context.Context, one, gone clientv3.LeaseID) error {
	session, err := concurrency.NewSession(s.cli, concurrency.WithLease(one))
	if err != nil {
		return err
	}
	session.Orphan()
	mutex := concurrency.NewMutex(session, s.name+"-lock")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	resp, err := s.cli.Txn(ctx).If(mutex.IsOwner()).Then(clientv3.OpDelete(mutex.Key())).Commit()
	if err != nil {
		return err
	}
	fmt.Println("locked and unlocked:", resp.Succeeded)
	session, err = concurrency.NewSession(s.cli, concurrency.WithLease(gone))
	if err != nil {
		return err
	}
	session.Orphan()
	err = concurrency.NewMutex(session, s.name+"-lock").Lock(ctx)
	fmt.Println("without a lease:", errors.Is(err, rpctypes.ErrLeaseNotFound))
	return nil
}
