package etcdtest

import (
	"net"
	"testing"
)

// Nowhere returns a loopback address at which no process listens until the test ends. It is the
// local end of a connection of this process, so that no other process can get its port and listen
// there.
func Nowhere(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Errorf("closing a listener: %v", err)
		}
	})
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("connecting to oneself: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("closing a connection: %v", err)
		}
	})
	return conn.LocalAddr().String()
}
