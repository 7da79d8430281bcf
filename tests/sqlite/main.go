// Command sqlite is a leader whose data are in a database without a connection to etcd: the example
// of package fence. Start it twice, with one file; one of them counts, and each number is written
// in a transaction that refuses a token older than the newest.
//
// Try the case that no election can prevent: stop the leader between its last check and its write
// for longer than its TTL, and continue it when the other one leads. --step makes that interval as
// long as you like, by waiting for Enter.
//
//	go run . --node a --db /tmp/ledger --ttl 2s --step    # Enter, then Ctrl-Z
//	go run . --node b --db /tmp/ledger --ttl 2s           # elsewhere: leads after the TTL
//	fg                                                    # Enter: refused
//
// With --fence=false on both, the first one overwrites what the second has written. The test does
// all that with real processes, and reads the file.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/lease"
)

// node is the configuration from the flags.
type node struct {
	election, name, file string
	endpoints            []string
	ttl, every           time.Duration
	fenced               bool
	step                 *bufio.Scanner // nil: does not wait
}

func main() {
	election := flag.String("election", "counting", "the election: the same for all nodes")
	name := flag.String("node", "", "the name of this node; no other running process may have it")
	file := flag.String("db", "", "the database: the same file for all nodes")
	endpoints := flag.String("endpoints", "127.0.0.1:2379", "etcd's client endpoints, separated by commas")
	ttl := flag.Duration("ttl", 10*time.Second, "how long the others wait for a node that crashed")
	every := flag.Duration("every", time.Second/2, "how often the leader counts")
	fenced := flag.Bool("fence", true, "let the database refuse older tokens")
	step := flag.Bool("step", false, "wait for Enter between the check of leadership and the write")
	flag.Parse()
	if *name == "" || *file == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "--node and --db are required, and no other arguments are allowed")
		os.Exit(2)
	}
	n := node{election: *election, name: *name, file: *file, endpoints: strings.Split(*endpoints, ","), ttl: *ttl, every: *every, fenced: *fenced}
	if *step {
		n.step = bufio.NewScanner(os.Stdin)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := n.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run campaigns until ctx ends.
func (n node) run(ctx context.Context) (err error) {
	ledger, err := openLedger(ctx, n.file, n.fenced)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.close()) }()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: n.endpoints,
		// Without these a broken connection is noticed too late for a lease.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		// By default it logs a warning on stderr for each refused request, also for retries.
		Logger: zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	e, err := elector.New(elector.Config{
		Election: n.election, NodeID: n.name,
		Source:  elector.Always(elector.Client(client)),
		Session: lease.Options{TTL: n.ttl},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)), // who leads, and why campaigns fail
	})
	if err != nil {
		return err
	}
	err = e.Run(ctx, func(leading context.Context, l *elector.Leadership) error {
		err := n.count(ctx, leading, l, ledger)
		var refused *fence.RefusedError
		if errors.As(err, &refused) {
			fmt.Printf("%s was refused: %v\n", n.name, err)
		}
		return err
	})
	if ctx.Err() != nil && !errors.Is(err, eldest.ErrStuck) {
		return nil // ended by a signal, as intended
	}
	return err
}

// count is the leader's work. The transactions use the context of the process and not the leading
// one: therefore they need the fence as much as operations that cannot be canceled at all. Use the
// leading context in your programs; then most late writes are not even tried.
func (n node) count(ctx, leading context.Context, l *elector.Leadership, ledger *ledger) error {
	i, err := ledger.begin(ctx, n.election, l.Token())
	if err != nil {
		return err
	}
	fmt.Printf("%s leads with token %d and continues from %d\n", n.name, l.Token(), i)
	for {
		select {
		case <-leading.Done():
			return nil
		case <-time.After(n.every):
		}
		i++
		if !l.Holds(0) {
			return l.Err()
		}
		if err := n.pause(i); err != nil {
			return err
		}
		if err := ledger.set(ctx, n.election, l.Token(), n.name, i); err != nil {
			return err
		}
		fmt.Printf("%s wrote %d\n", n.name, i)
	}
}

// pause is between the last check and the write, where any process may be stopped for any time.
func (n node) pause(i int64) error {
	if n.step == nil {
		return nil
	}
	fmt.Printf("%s has checked that it leads; press Enter, and it writes %d\n", n.name, i)
	if !n.step.Scan() {
		return errors.Join(io.EOF, n.step.Err())
	}
	return nil
}
