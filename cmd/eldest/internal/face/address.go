package face

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrAddress is wrapped by Listen's errors.
var ErrAddress = errors.New("want PORT or HOST:PORT, as in 9301 or 127.0.0.1:9301")

// Listen listens where address says: "HOST:PORT", or "PORT" or ":PORT" for the loopback
// address alone; port 0 is a free one. The error wraps ErrAddress where there is no such
// address, and says what is wrong where it cannot be listened on.
func Listen(address string) (net.Listener, error) {
	host, port := "127.0.0.1", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return nil, ErrAddress
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return nil, fmt.Errorf("%q is no port; %w", port, ErrAddress)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%w; give another one; port 0 is a free one", err)
	}
	return l, nil
}
