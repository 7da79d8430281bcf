package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// spool is a list that its lock protects.
type spool struct {
	lock  sync.Locker
	lines *[]string
}

func (s spool) write(parts ...string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, part := range parts {
		*s.lines = append(*s.lines, part)
		time.Sleep(time.Millisecond)
	}
}

// locker passes a sync.Locker to code that does not use etcd: a spool that several machines fill,
// whose entries must not be mixed.
func locker(ctx context.Context, cli *clientv3.Client, name string) error {
	const machines, entries = 3, 5
	var lines []string
	closed := make(chan error, machines)
	for range machines {
		session, err := concurrency.NewSession(cli, concurrency.WithTTL(30))
		if err != nil {
			return err
		}
		go func() {
			s := spool{concurrency.NewLocker(session, name), &lines}
			for range entries {
				s.write("begin", "middle", "end")
			}
			closed <- session.Close()
		}()
	}
	for range machines {
		if err := <-closed; err != nil {
			return err
		}
	}
	mixed := 0
	for i, line := range lines {
		if line != [...]string{"begin", "middle", "end"}[i%3] {
			mixed++
		}
	}
	resp, err := cli.Get(ctx, name, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	fmt.Println(len(lines), "lines,", mixed, "mixed up,", resp.Count, "keys left")
	return nil
}
