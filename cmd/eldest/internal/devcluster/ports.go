package devcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports that freePorts chooses from lie below the range from which
// operating systems take the ports of outgoing connections (Linux: 32768 and up),
// so that no connection can take a member's port while the member is down.
const (
	firstPort = 20000
	lastPort  = 29999
)

// freePorts returns n ports that are free on 127.0.0.1 now. Nothing keeps them
// free until they are used.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener // so that one port is not found twice
	defer func() {
		for _, l := range held {
			_ = l.Close() // nobody was served
		}
	}()
	for range 100 + 10*n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}
