package keeper

import (
	"bytes"
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

	"github.com/eldest-io/eldest/internal/pidfd"
)

// keeper is the keeper's process.
type keeper struct {
	of      int // a pidfd
	orders  int // -1: nobody can give any
	partial []byte
	begun   bool // the first order was read
	with    []byte
	leases  map[clientv3.LeaseID]time.Duration // their TTLs
	ended   bool                               // it was told to end
}

// serve is the keeper's whole life.
func serve(of string, dial func(context.Context, []byte) (*clientv3.Client, error)) error {
	k, err := begin(of)
	report := ready
	if err != nil {
		report = err.Error()
	}
	_, _ = unix.Write(reportsFD, []byte(report+"\n"))
	_ = unix.Close(reportsFD)
	if err != nil {
		return err
	}
	// Who kills all processes of the program by its name does not mean this one.
	_ = os.WriteFile("/proc/self/comm", []byte("keeper"), 0)
	// Who stops a whole group of processes means the other one, whose end is waited for.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	etcd := NewRevoker(func(ctx context.Context) (*clientv3.Client, error) { return dial(ctx, k.with) })
	dead, err := k.wait()
	if err != nil || !dead || len(k.leases) == 0 {
		return err
	}
	longest := slices.Max(slices.Collect(maps.Values(k.leases)))
	return etcd.Farewell(longest, slices.Collect(maps.Keys(k.leases))...)
}

// begin opens a pidfd of the process with an ID, which must be the parent, and reads the first order.
func begin(of string) (*keeper, error) {
	pid, err := strconv.Atoi(of)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: only keeper.Start sets it", variable, of)
	}
	for _, fd := range []int{ordersFD, reportsFD} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, fmt.Errorf("%s is set, but this process was not started by keeper.Start", variable)
		}
		unix.CloseOnExec(fd)
	}
	_ = os.Unsetenv(variable)
	fd, err := pidfd.Parent(pid)
	if err != nil {
		return nil, err
	}
	k := &keeper{of: fd, orders: ordersFD, leases: make(map[clientv3.LeaseID]time.Duration)}
	for !k.begun {
		if more, err := k.read(); err != nil || !more {
			return nil, errors.Join(errors.New("the orders have ended before they began"), err)
		}
	}
	// From here on what there is is read: a child of that process may have the other end, and live on.
	return k, unix.SetNonblock(ordersFD, true)
}

// wait takes orders until the process is dead, or nothing is wanted of this one any more: it was told
// to end, or the orders have ended without that and the process lives. Then that has become another
// program (exec), and its leases expire.
func (k *keeper) wait() (dead bool, err error) {
	limit := -1
	for {
		fds := []unix.PollFd{{Fd: int32(k.of), Events: unix.POLLIN}, {Fd: int32(k.orders), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, limit)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, err
		case n == 0:
			return false, nil
		}
		dead := fds[0].Revents != 0
		// All that it has told comes first: of a lease that it has dropped, say.
		for more := fds[1].Revents != 0; more; {
			if more, err = k.read(); err != nil {
				return false, err
			}
		}
		switch {
		case k.ended:
			return false, nil
		case dead:
			return true, nil
		case k.orders < 0:
			limit = int(pidfd.Dying.Milliseconds())
		}
	}
}

// read takes orders that are there, and reports whether there may be more.
func (k *keeper) read() (more bool, err error) {
	buffer := make([]byte, 64<<10)
	n, err := unix.Read(k.orders, buffer)
	switch {
	case errors.Is(err, unix.EINTR):
		return true, nil
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		k.orders = -1 // which poll leaves out
		return false, nil
	}
	k.partial = append(k.partial, buffer[:n]...)
	for {
		line, rest, found := bytes.Cut(k.partial, []byte{'\n'})
		if !found {
			return true, nil
		}
		k.partial = rest
		if err := k.obey(string(line)); err != nil {
			return false, err
		}
	}
}

func (k *keeper) obey(order string) error {
	if !k.begun {
		var err error
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
	case n == 2 && what == "drop":
		delete(k.leases, id)
	default:
		return fmt.Errorf("the order %q is not understood: %w", order, err)
	}
	return nil
}
