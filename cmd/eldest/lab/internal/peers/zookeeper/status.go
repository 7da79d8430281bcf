package zookeeper

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// status is what a server answers to the command srvr.
type status struct {
	version string
	// mode is "leader" or "follower".
	mode string
	// zxid is the number of the last transaction.
	zxid int64
}

// ask asks a server for its status. A server that does not serve clients returns an error.
func ask(ctx context.Context, address string) (status, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return status{}, err
	}
	defer func() { _ = conn.Close() }() // it was only read from, or it is closed already
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return status{}, err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return status{}, err
	}
	return parse(string(answer))
}

// parse reads lines such as "Mode: leader".
func parse(answer string) (status, error) {
	var s status
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Zookeeper version":
			s.version, _, _ = strings.Cut(value, "-") // the build follows
		case "Mode":
			s.mode = value
		case "Zxid":
			zxid, err := strconv.ParseInt(value, 0, 64)
			if err != nil {
				return status{}, fmt.Errorf("the answer %q has no zxid: %w", answer, err)
			}
			s.zxid = zxid
		}
	}
	if s.mode == "" || s.version == "" {
		return status{}, fmt.Errorf("the server does not serve clients: %q", answer)
	}
	return s, nil
}
