package face_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
)

// A port alone is on the loopback address; a host is taken as it is.
func TestListen(t *testing.T) {
	for address, host := range map[string]string{
		"0": "127.0.0.1", ":0": "127.0.0.1", "127.0.0.1:0": "127.0.0.1", "localhost:0": "127.0.0.1", "0.0.0.0:0": "::",
	} {
		l, err := face.Listen(address)
		require.NoError(t, err, address)
		got := l.Addr().(*net.TCPAddr).IP
		require.NoError(t, l.Close())
		if host == "::" {
			require.True(t, got.IsUnspecified(), "%s: %v", address, got)
		} else {
			require.Equal(t, host, got.String(), address)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"", ":", "x", "70000", "-1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "a:b:c", "::1:80", "http://127.0.0.1:80"} {
		_, err := face.Listen(address)
		require.ErrorIs(t, err, face.ErrAddress, address)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = face.Listen(taken.Addr().String())
	require.ErrorContains(t, err, "port 0 is", "what to do is said")
	_, err = face.Listen("192.0.2.1:0") // of nobody's machine
	require.Error(t, err)
}
