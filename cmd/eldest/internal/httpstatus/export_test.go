package httpstatus

import (
	"net"
	"net/http"
)

// The bounds, for tests.
const (
	Limit  = limit
	Moment = moment
)

// Track is the ConnState of a server without connections.
func Track() func(net.Conn, http.ConnState) {
	return (&connections{open: make(map[net.Conn]usage)}).track
}
