package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// authority makes certificates and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate, signed by a or, for the first one, by itself, in
// name.crt and name.key.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(a.t, os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// startTLS serves an etcd behind TLS, to clients with a certificate of a only.
func startTLS(t *testing.T, a *authority, etcd *etcd) (endpoint string) {
	a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := tls.LoadX509KeyPair(a.file("server.crt"), a.file("server.key"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
	})
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
	a, strangers := newAuthority(t, "ca"), newAuthority(t, "ca")
	a.issue("client", &x509.Certificate{})
	endpoint := startTLS(t, a, etcd)
	etcd.leading("svc", "me")
	for name, c := range map[string]struct {
		code   int
		stderr string
		args   []string
	}{
		"right":         {cli.ExitOK, "", []string{"--cacert", a.file("ca.crt"), "--cert", a.file("client.crt"), "--key", a.file("client.key")}},
		"unverified":    {cli.ExitOK, "", []string{"--insecure-skip-tls-verify", "--cert", a.file("client.crt"), "--key", a.file("client.key")}},
		"unknown":       {cli.ExitFailed, "certificate", []string{"--cacert", strangers.file("ca.crt"), "--cert", a.file("client.crt"), "--key", a.file("client.key")}},
		"unidentified":  {cli.ExitFailed, "no answer", []string{"--cacert", a.file("ca.crt")}},
		"without a CA":  {cli.ExitFailed, "certificate", nil},
		"not a keypair": {cli.ExitUsage, "--cert", []string{"--cert", a.file("client.crt"), "--key", a.file("ca.key")}},
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
