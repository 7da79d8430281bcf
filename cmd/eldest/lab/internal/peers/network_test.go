//go:build linux

package peers_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// unacknowledged returns how many segments of a connection the other side has not acknowledged.
func unacknowledged(t *testing.T, c net.Conn) (n uint32) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		require.NoError(t, err)
		n = info.Unacked
	}))
	return n
}

// pair is a connection of a network, and the other side of it.
func pair(t *testing.T, n *peers.Network) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	ours, err = n.Dial(etcdtest.Context(t), "tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(etcdtest.Patience)))
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func requireNothing(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// While a network is cut the other side sees what it sees of a dead machine: nothing arrives, and the kernel
// acknowledges nothing. When it is healed, everything arrives, and nothing has failed.
func TestCut(t *testing.T) {
	n := peers.NewNetwork()
	defer n.Close()
	ours, theirs := pair(t, n)
	write(t, ours, "before")
	read(t, theirs, "before")
	write(t, theirs, "back")
	read(t, ours, "back")
	etcdtest.Eventually(t, func() bool { return unacknowledged(t, theirs) == 0 }, "the kernel acknowledges")

	require.NoError(t, n.Cut())
	write(t, ours, "kept")
	write(t, theirs, "lost in the air")
	requireNothing(t, theirs)
	requireNothing(t, ours) // its own deadline holds
	require.Positive(t, unacknowledged(t, theirs))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := n.Dial(ctx, "tcp", "127.0.0.1:1")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, n.Heal())
	read(t, theirs, "kept")
	read(t, ours, "lost in the air")
	writes, bytes := n.Counts()
	require.Equal(t, []int64{2, 10}, []int64{writes, bytes})
}

// What is closed while the network is cut is closed for its user only: the other side receives the last bytes,
// and the end, when it is healed.
func TestCloseInACut(t *testing.T) {
	n := peers.NewNetwork()
	defer n.Close()
	ours, theirs := pair(t, n)
	require.NoError(t, n.Cut())
	write(t, ours, "last")
	reading := etcdtest.Go(func() error { return etcdtest.Err(ours.Read(make([]byte, 1))) })
	require.NoError(t, ours.Close())
	require.ErrorIs(t, etcdtest.Take(t, reading, "the reader returns"), net.ErrClosed)
	require.ErrorIs(t, etcdtest.Err(ours.Write([]byte("x"))), net.ErrClosed)
	requireNothing(t, theirs)
	require.NoError(t, n.Heal())
	read(t, theirs, "last")
	require.ErrorIs(t, etcdtest.Err(theirs.Read(make([]byte, 1))), io.EOF)
}

// A listener of a network that is cut accepts nothing, and its kernel does not even answer.
func TestListenerInACut(t *testing.T) {
	n := peers.NewNetwork()
	defer n.Close()
	l, err := n.Listen("127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan net.Conn, 1)
	accepting := etcdtest.Go(func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			accepted <- c
		}
	})
	require.NoError(t, n.Cut())
	_, err = net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), "%v", err)
	require.NoError(t, n.Heal())
	theirs, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = theirs.Close() }()
	ours := etcdtest.Take(t, accepted, "accepted")

	require.NoError(t, n.Cut()) // also what was accepted
	write(t, theirs, "hello")
	requireNothing(t, ours)
	require.Positive(t, unacknowledged(t, theirs))
	require.NoError(t, n.Heal())
	read(t, ours, "hello")
	require.NoError(t, l.Close())
	require.ErrorIs(t, etcdtest.Take(t, accepting, "the listener is closed"), net.ErrClosed)
}
