package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	workers = 4
	each    = 15
)

// counter counts in a key that it reads and writes in two requests, behind a mutex that workers on
// several machines share, and keeps the sum of two accounts by software transactional memory.
func counter(ctx context.Context, cli *clientv3.Client, name string) error {
	if _, err := cli.Put(ctx, name+"-from", "1000"); err != nil {
		return err
	}
	if err := abreast(workers, func() error { return worker(ctx, cli, name) }); err != nil {
		return err
	}
	for _, key := range []string{"-count", "-from", "-to"} {
		resp, err := cli.Get(ctx, name+key)
		if err != nil {
			return err
		}
		fmt.Printf("%s %s\n", key, resp.Kvs[0].Value)
	}
	return nil
}

func worker(ctx context.Context, cli *clientv3.Client, name string) error {
	session, err := concurrency.NewSession(cli)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	mutex := concurrency.NewMutex(session, "/locks/"+name)
	for i := range each {
		if i%5 == 4 { // every fifth time it does not wait in Lock
			err = mutex.TryLock(ctx)
			for errors.Is(err, concurrency.ErrLocked) {
				time.Sleep(time.Millisecond)
				err = mutex.TryLock(ctx)
			}
		} else {
			err = mutex.Lock(ctx)
		}
		if err != nil {
			return err
		}
		if err := increment(ctx, cli, mutex, name+"-count"); err != nil {
			return err
		}
		if err := mutex.Unlock(ctx); err != nil {
			return err
		}
		if _, err := concurrency.NewSTM(cli, func(stm concurrency.STM) error {
			stm.Put(name+"-from", add(stm.Get(name+"-from"), -1))
			stm.Put(name+"-to", add(stm.Get(name+"-to"), 1))
			return nil
		}, concurrency.WithAbortContext(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// increment reads and writes in two requests: without the mutex counts would be lost.
func increment(ctx context.Context, cli *clientv3.Client, mutex *concurrency.Mutex, key string) error {
	resp, err := cli.Get(ctx, key)
	if err != nil {
		return err
	}
	value := ""
	if len(resp.Kvs) > 0 {
		value = string(resp.Kvs[0].Value)
	}
	txn, err := cli.Txn(ctx).If(mutex.IsOwner()).Then(clientv3.OpPut(key, add(value, 1))).Commit()
	if err == nil && !txn.Succeeded {
		err = errors.New("the mutex is not ours any more")
	}
	return err
}

func add(value string, n int) string {
	old, _ := strconv.Atoi(value) // an empty value counts as 0
	return strconv.Itoa(old + n)
}
