package main

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
)

// httpFlag is --http of the commands that stand in an election.
type httpFlag struct{ address string }

// httpHelp is what their --help says of it.
const httpHelp = `
With --http it serves /metrics for Prometheus, /healthz (200, or 503 once it has had no
living session for twice the TTL, and ten seconds at least) and /leader (200 while it
leads, else 503), without TLS. It says on stderr where; a port alone is on 127.0.0.1.
`

func addHTTPFlag(cmd *cobra.Command) *httpFlag {
	f := &httpFlag{}
	cmd.Flags().StringVar(&f.address, "http", "", "PORT or HOST:PORT where to serve /metrics, /healthz and /leader; port 0 is a free one (default: nowhere)")
	return f
}

// serve begins to serve, before anything is sent to etcd, and says where; without --http it
// returns nil, of which all methods do nothing. The caller closes it.
func (f *httpFlag) serve(cmd *cobra.Command, election string, ttl time.Duration, say func(string)) (*face.Face, error) {
	if !cmd.Flags().Changed("http") {
		return nil, nil //nolint:nilnil // a face that does nothing
	}
	listener, err := face.Listen(f.address)
	if err != nil {
		return nil, cli.Usagef("--http %q: %w", f.address, err)
	}
	shown := face.Serve(listener, election, face.Grace(ttl))
	say(fmt.Sprintf("serving http://%s/metrics, /healthz and /leader", shown.Address()))
	return shown, nil
}
