// Command programs has small programs of the kinds that use etcd's concurrency package, each in a file
// of its own: a cron job that leads, a counter with a mutex, a worker with a hot standby, a leader that
// is restarted with its lease, a sync.Locker, and a service that makes a session for each request. The
// arguments are the program, a name in etcd that no other program uses, and etcd's endpoints.
package main

import (
	"context"
	"log"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var programs = map[string]func(ctx context.Context, cli *clientv3.Client, name string) error{
	"cron": cron, "counter": counter, "failover": failover, "resume": resume, "service": serve, "locker": locker,
}

func main() {
	if err := start(os.Args[1], os.Args[2], strings.Split(os.Args[3], ",")); err != nil {
		log.Fatal(err)
	}
}

// abreast runs work n times at once. It returns the first error, or nil once all have ended.
func abreast(n int, work func() error) error {
	ended := make(chan error, n)
	for range n {
		go func() { ended <- work() }()
	}
	for range n {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

func start(program, name string, endpoints []string) error {
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		return err
	}
	defer func() { _ = cli.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return programs[program](ctx, cli, name)
}
