package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority issues certificates for an hour.
type authority struct {
	t    testing.TB
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

var serial atomic.Int64

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.key, a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.pool.AddCert(a.cert)
	a.write("ca.crt", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) sign(template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(serial.Add(1))
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, with := template, key
	if a.cert != nil {
		by, with = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return key, cert
}

// issue gives somebody a certificate for a name, good for either end of a connection, and
// for this machine's address if it is to serve there.
func (a *authority) issue(name string, serves bool) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if serves {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	key, cert := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// files writes a certificate and its key where a process can read them.
func (a *authority) files(name string, pair tls.Certificate) (cert, key string) {
	a.t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(a.t, err)
	return a.write(name+".crt", "CERTIFICATE", pair.Certificate[0]), a.write(name+".key", "PRIVATE KEY", secret)
}

func (a *authority) write(file, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// client is how somebody connects who trusts the authority; a nil name has no certificate.
func (a *authority) client(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: certificates, RootCAs: a.pool, MinVersion: tls.VersionTLS13}
}
