package main

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/internal/etcdtest"

	"github.com/stretchr/testify/require"
)

// startTLS serves an etcd behind TLS, to clients with a certificate of a only.
func startTLS(t *testing.T, a *etcdtest.Authority, etcd *etcd) (endpoint string) {
	cfg := a.Server(a.Issue("127.0.0.1"), tls.RequireAndVerifyClientCert)
	cfg.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = in.Close() }()
				out, err := net.Dial("tcp", strings.TrimPrefix(etcd.endpoint, "http://"))
				if err != nil {
					return
				}
				serving.Go(func() {
					defer func() { _ = out.Close() }()
					_, _ = io.Copy(out, in)
				})
				_, _ = io.Copy(in, out)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "https://" + l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, strangers := etcdtest.NewAuthority(t), etcdtest.NewAuthority(t)
	cert, key := a.Files(a.Issue("client"))
	_, another := a.Files(a.Issue("client"))
	endpoint := startTLS(t, a, etcd)
	etcd.leading("svc", "me")
	for name, c := range map[string]struct {
		code   int
		stderr string
		args   []string
	}{
		"right":         {cli.ExitOK, "", []string{"--cacert", a.File, "--cert", cert, "--key", key}},
		"unverified":    {cli.ExitOK, "", []string{"--insecure-skip-tls-verify", "--cert", cert, "--key", key}},
		"unknown":       {cli.ExitFailed, "certificate", []string{"--cacert", strangers.File, "--cert", cert, "--key", key}},
		"unidentified":  {cli.ExitFailed, "no answer", []string{"--cacert", a.File}},
		"without a CA":  {cli.ExitFailed, "certificate", nil},
		"not a keypair": {cli.ExitUsage, "--cert", []string{"--cert", cert, "--key", another}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcd.of(t)
			limit := patience // for an answer; what is refused has to be so within it, and goes on to its end
			if c.code != cli.ExitOK {
				limit = 5 * time.Second
			}
			args := append([]string{"leader", "svc", "--endpoints", endpoint, "--command-timeout", limit.String(), "--dial-timeout", limit.String()}, c.args...)
			code, stdout, stderr := etcd.line(args...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.stderr)
			require.Equal(t, c.code == cli.ExitOK, strings.Contains(stdout, "me"), stdout)
		})
	}
}
