package page

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:7000":   "http://127.0.0.1:7000/?token=t",
		"[::1]:7000":       "http://[::1]:7000/?token=t",
		"0.0.0.0:7000":     "http://127.0.0.1:7000/?token=t",
		"[::]:7000":        "http://127.0.0.1:7000/?token=t",
		"192.168.1.9:7000": "http://192.168.1.9:7000/?token=t",
	} {
		require.Equal(t, want, gate{address: netip.MustParseAddrPort(address), token: "t"}.url(), address)
	}
}

// A server that others may reach is asked for by its address, or by the name that --listen has. Other
// names may be an attacker's.
func TestOwnHosts(t *testing.T) {
	for _, c := range []struct {
		address, name string
		yes, no       []string
	}{
		{"127.0.0.1:7000", "127.0.0.1", []string{"127.0.0.1:7000", "localhost:7000"}, []string{"10.0.0.7:7000", "host:7000", "", ":7000", "localhost:7001", "127.0.0.1.evil.example:7000"}},
		{"127.0.0.1:80", "", []string{"127.0.0.1", "localhost", "localhost:80"}, []string{"host"}},
		{"0.0.0.0:7000", "0.0.0.0", []string{"10.0.0.7:7000", "127.0.0.1:7000", "localhost:7000", "0.0.0.0:7000", "[::1]:7000"}, []string{"evil.example:7000", "10.0.0.7:7001"}},
		{"[::]:7000", "::", []string{"10.0.0.7:7000", "[fe80::1]:7000"}, []string{"evil.example:7000"}},
		{"192.168.1.9:7000", "build.example", []string{"192.168.1.9:7000", "build.example:7000"}, []string{"192.168.1.8:7000", "example:7000"}},
		{"[::1]:7000", "::1", []string{"[::1]:7000", "localhost:7000"}, []string{"127.0.0.1:7000"}},
	} {
		g := gate{address: netip.MustParseAddrPort(c.address), name: c.name}
		for _, host := range c.yes {
			require.True(t, g.own(host), "%q at %s", host, c.address)
		}
		for _, host := range c.no {
			require.False(t, g.own(host), "%q at %s", host, c.address)
		}
	}
}
