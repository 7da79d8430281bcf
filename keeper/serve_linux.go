package keeper

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/subprocess"
)

// keeper is the state of the keeper's process.
type keeper struct {
	parent int               // a pidfd
	orders subprocess.Orders // until there can be no more
	begun  bool              // the first order was read
	with   []byte
	leases map[clientv3.LeaseID]time.Duration // their TTLs
	holds  map[clientv3.LeaseID]int           // how often they are held: by each of their sessions
	ended  bool                               // the order to end was read
}

// serve is the main function of the keeper.
func serve(parent string, dial func(context.Context, []byte) (*clientv3.Client, error)) error {
	// This comes before the report that the keeper is ready.
	//
	// The keeper has a name of its own, so that it survives when a user kills the processes of the
	// program by name.
	_ = os.WriteFile("/proc/self/comm", []byte("keeper"), 0)
	// Signals to a whole process group are meant for the program. The keeper waits for its end.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	k, err := begin(parent)
	report := ready
	if err != nil {
		report = err.Error()
	}
	_, _ = unix.Write(subprocess.ReportsFD, []byte(report+"\n"))
	_ = unix.Close(subprocess.ReportsFD)
	if err != nil {
		return err
	}
	etcd := NewRevoker(func(ctx context.Context) (*clientv3.Client, error) { return dial(ctx, k.with) })
	dead, err := k.wait()
	if err != nil || !dead || len(k.leases) == 0 {
		return err
	}
	longest := slices.Max(slices.Collect(maps.Values(k.leases)))
	return etcd.RevokeAll(longest, slices.Collect(maps.Keys(k.leases))...)
}

// begin opens a pidfd of the process with an ID, which must be the parent, and reads the first order.
func begin(parent string) (*keeper, error) {
	pid, err := strconv.Atoi(parent)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: only keeper.Start sets it", variable, parent)
	}
	if err := subprocess.Inherit(); err != nil {
		return nil, fmt.Errorf("%s is set by keeper.Start only: %w", variable, err)
	}
	_ = os.Unsetenv(variable)
	k := &keeper{leases: make(map[clientv3.LeaseID]time.Duration), holds: make(map[clientv3.LeaseID]int)}
	if k.parent, err = subprocess.Parent(pid); err != nil {
		return nil, err
	}
	for more := true; !k.begun; {
		if !more || err != nil {
			return nil, errors.Join(errors.New("the pipe of orders was closed before the first order"), err)
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: subprocess.OrdersFD, Events: unix.POLLIN}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		more, err = k.read()
	}
	return k, nil
}

// wait carries out orders until the process is dead, or the keeper is not needed any more: after
// the order to end, or if the pipe of the orders is closed without it and the process lives. Then
// the process has become another program (exec), and its leases expire.
func (k *keeper) wait() (dead bool, err error) {
	limit, orders := -1, int32(subprocess.OrdersFD)
	for {
		fds := []unix.PollFd{{Fd: int32(k.parent), Events: unix.POLLIN}, {Fd: orders, Events: unix.POLLIN}}
		n, err := unix.Poll(fds, limit)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, err
		case n == 0:
			return false, nil
		}
		// All orders that have arrived come first: one may drop a lease.
		if fds[1].Revents != 0 {
			more, err := k.read()
			if err != nil {
				return false, err
			}
			if !more {
				orders, limit = -1, int(subprocess.Dying.Milliseconds()) // poll ignores -1
			}
		}
		if k.ended || fds[0].Revents != 0 {
			return !k.ended, nil
		}
	}
}

// read carries out the orders that have arrived, and reports whether there may be more.
func (k *keeper) read() (more bool, err error) {
	lines, more, err := k.orders.Read()
	for _, line := range lines {
		if err == nil {
			err = k.obey(string(line))
		}
	}
	return more, err
}

func (k *keeper) obey(order string) (err error) {
	if !k.begun {
		k.begun = true
		k.with, err = hex.DecodeString(order)
		return err
	}
	if order == "end" {
		k.ended = true
		return nil
	}
	var what string
	var id clientv3.LeaseID
	var ttl time.Duration
	switch n, err := fmt.Sscanf(order, "%s %x %d", &what, &id, &ttl); {
	case n == 3 && what == "hold":
		k.leases[id] = ttl
		k.holds[id]++
	case n == 2 && what == "drop":
		if k.holds[id]--; k.holds[id] <= 0 {
			delete(k.leases, id)
			delete(k.holds, id)
		}
	default:
		return fmt.Errorf("unknown order %q: %w", order, err)
	}
	return nil
}

// silence redirects the standard streams of this process to /dev/null.
func silence() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return // they stay open until the end
	}
	for fd := range 3 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
}
