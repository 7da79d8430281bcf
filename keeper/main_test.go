package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// The environment of the processes of these tests: where etcd is, in which election to campaign,
// and what to do when they lead. dialsAfter is a file before which dial fails.
const (
	endpoints  = "KEEPER_TEST_ENDPOINTS"
	inElection = "KEEPER_TEST_ELECTION"
	then       = "KEEPER_TEST_THEN"
	dialsAfter = "KEEPER_TEST_DIALS_AFTER"
)

func TestMain(m *testing.M) {
	switch os.Getenv(then) {
	case "start without Serve":
		_, err := keeper.Start(context.Background(), nil)
		fmt.Println(errors.Is(err, eldest.ErrInvalid), err)
		os.Exit(0)
	case "start without free files":
		keeper.Serve(dial)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{})
		_, err := keeper.Start(context.Background(), nil)
		fmt.Println(errors.Is(err, syscall.EMFILE), errors.Is(err, errors.ErrUnsupported))
		os.Exit(0)
	case "dial nothing":
		var dialed atomic.Int64
		keeper.NewRevoker(func(context.Context) (*clientv3.Client, error) { dialed.Add(1); return nil, nil })
		time.Sleep(300 * time.Millisecond)
		fmt.Println(dialed.Load() < 100)
		os.Exit(0)
	default:
		keeper.Serve(dial)
	}
	if os.Getenv(inElection) != "" {
		if err := candidate(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	etcdtest.Main(m)
}

func dial(_ context.Context, with []byte) (*clientv3.Client, error) {
	if file := os.Getenv(dialsAfter); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
	}
	return clientv3.New(clientv3.Config{Endpoints: strings.Split(string(with), ","), Logger: zap.NewNop()})
}

// ttl is longer than any of these tests waits: a key that is deleted earlier was not deleted
// because its lease expired.
const ttl = 10 * time.Minute

// candidate runs a process with a keeper that leads, and prints that.
func candidate() error {
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	k, err := keeper.Start(ctx, []byte(os.Getenv(endpoints)))
	if err != nil {
		return err
	}
	cli, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Getenv(endpoints), ","), Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	s, err := lease.Open(ctx, lease.Config{Lease: cli, Options: lease.Options{TTL: ttl, Keeper: k}})
	if err != nil {
		return err
	}
	c, err := election.New(election.Config{Election: os.Getenv(inElection), Session: s, KV: cli, Watcher: cli})
	if err != nil {
		return err
	}
	l, err := c.Campaign(ctx)
	if err != nil {
		return err
	}
	say := func() { fmt.Printf("leads %d %x %d\n", l.Token(), s.ID(), k.Pid()) }
	switch os.Getenv(then) {
	case "":
		say()
	case "abandon":
		s.Abandon()
		say()
	case "abandon one of two sessions":
		if _, err := lease.Resume(ctx, lease.Config{Lease: cli, Options: lease.Options{Keeper: k}}, s.ID()); err != nil {
			return err
		}
		s.Abandon()
		say()
	case "close":
		if err := errors.Join(s.Close(ctx), k.Close(ctx)); err != nil {
			return err
		}
		say()
		return nil
	case "has a child with all its files": // as a library in C may start one
		sleep, err := exec.LookPath("sleep")
		if err != nil {
			return err
		}
		for fd := range 64 {
			syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0) //nolint:errcheck // some are no files
		}
		if _, err := syscall.ForkExec(sleep, []string{"sleep", "5"}, &syscall.ProcAttr{Env: os.Environ(), Files: allFiles()}); err != nil {
			return err
		}
		say()
	case "becomes another program":
		say()
		sleep, err := exec.LookPath("sleep")
		if err != nil {
			return err
		}
		return syscall.Exec(sleep, []string{"sleep", "60"}, os.Environ())
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is over
	return nil
}

// allFiles returns the descriptors of this process. stderr takes the place of those that are not
// open.
func allFiles() []uintptr {
	files := make([]uintptr, 64)
	for fd := range files {
		files[fd] = uintptr(fd)
		if _, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil {
			files[fd] = 2
		}
	}
	return files
}
