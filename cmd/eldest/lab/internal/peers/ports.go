package peers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
)

// Ports are taken from below the range that operating systems use for outgoing connections (Linux: 32768
// and up), so that no connection takes the port of a server that is down.
const (
	firstPort = 20000
	lastPort  = 31999
)

// Ports are the ports of a run. The zero value is ready to use; it must be closed. On Linux a name in the
// abstract socket namespace, which ends with the process, reserves each for this run against other runs.
type Ports struct {
	mu    sync.Mutex
	taken map[int]net.Listener
}

// Take returns n free ports of 127.0.0.1.
func (p *Ports) Take(n int) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = map[int]net.Listener{}
	}
	var found []int
	for range 1000 {
		if len(found) == n {
			return found, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if _, ok := p.taken[port]; ok {
			continue
		}
		var claim net.Listener
		if runtime.GOOS == "linux" {
			var err error
			if claim, err = net.Listen("unix", fmt.Sprintf("@eldest-peers-%d", port)); err != nil {
				continue // another run has it
			}
		}
		p.taken[port] = claim // also if the port is in use: it is not tried again
		free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil || free.Close() != nil {
			continue
		}
		found = append(found, port)
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}

// Close ends the reservations.
func (p *Ports) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for port, claim := range p.taken {
		if claim != nil {
			_ = claim.Close() // it has accepted no connection
		}
		delete(p.taken, port)
	}
}
