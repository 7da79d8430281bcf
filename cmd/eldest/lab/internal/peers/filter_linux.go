package peers

import (
	"errors"

	"golang.org/x/sys/unix"
)

// dropAll is a filter that accepts no byte of any packet.
var dropAll = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}

// filter makes the kernel drop all packets for a socket, before TCP sees them, or no longer. A socket
// with the filter acknowledges nothing. It needs no privileges.
func filter(fd int, drop bool) error {
	if drop {
		one := dropAll
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &one})
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil // there was none
}
