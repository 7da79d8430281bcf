// Command locker passes a sync.Locker to code that does not use etcd: a spool that several machines
// fill, whose entries must not be mixed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	machines = 3
	entries  = 5
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
	resp, err := cli.Get(context.Background(), name, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	fmt.Println(len(lines), "lines,", mixed, "mixed up,", resp.Count, "keys left")
	return nil
}
