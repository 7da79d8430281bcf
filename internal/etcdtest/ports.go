package etcdtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
)

// Ports are taken from below the range that operating systems use for outgoing connections (Linux:
// 32768 and up), so that no connection takes the port of a member while that is down.
const (
	firstPort = 10000
	lastPort  = 19999
)

// reservedPorts are ports that this process holds against other test processes.
type reservedPorts struct {
	ports []int
	claim []net.Listener
}

// reservePorts finds n free ports. Until release they are reserved for this process: on Linux, a
// name in the abstract socket namespace, which dies with the process and is on no disk, tells all
// others. Elsewhere a collision is possible and unlikely; the cluster is then started anew.
func reservePorts(n int) (*reservedPorts, error) {
	r := &reservedPorts{}
	for range 1000 {
		if len(r.ports) == n {
			return r, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if runtime.GOOS == "linux" {
			claim, err := net.Listen("unix", fmt.Sprintf("@eldest-etcdtest-%d", port))
			if err != nil {
				continue // reserved by another process
			}
			r.claim = append(r.claim, claim)
		}
		lis, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // the claim is kept, so that no other process tries this port
		}
		if err := lis.Close(); err != nil {
			continue
		}
		r.ports = append(r.ports, port)
	}
	r.release()
	return nil, errors.New("etcdtest: no free ports on 127.0.0.1")
}

// join makes r hold the ports of other as well.
func (r *reservedPorts) join(other *reservedPorts) {
	r.ports, r.claim = append(r.ports, other.ports...), append(r.claim, other.claim...)
}

func (r *reservedPorts) release() {
	for _, l := range r.claim {
		_ = l.Close() // it has accepted no connection
	}
	r.claim = nil
}
