package etcdtest

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
)

// Authority signs the certificates of one test. They are valid for an hour.
type Authority struct {
	Pool *x509.CertPool // its own certificate
	File string         // the same, as a file

	t   testing.TB
	dir string
	own *tls.Certificate
}

// serial is the number of the latest certificate.
var serial atomic.Int64

// NewAuthority makes an authority for the test t.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), Pool: x509.NewCertPool()}
	own := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.own = &own
	a.Pool.AddCert(own.Leaf)
	a.File = a.write("ca.crt", "CERTIFICATE", own.Certificate[0])
	return a
}

// Issue returns a certificate for a client and a server with these names, of which some may be IP
// addresses. The first name is the common name, which etcd takes as the user name when clients
// authenticate by certificate.
func (a *Authority) Issue(names ...string) tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return a.sign(c)
}

// Files writes a certificate and its key to files that other processes can read.
func (a *Authority) Files(c tls.Certificate) (cert, key string) {
	a.t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	a.must(err)
	name := c.Leaf.SerialNumber.String()
	return a.write(name+".crt", "CERTIFICATE", c.Certificate[0]), a.write(name+".key", "PRIVATE KEY", secret)
}

// Client is the config of a client that trusts the authority and has these certificates.
func (a *Authority) Client(own ...tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: own, RootCAs: a.Pool, MinVersion: tls.VersionTLS13}
}

// Server is the config of a server that has a certificate and requests a client certificate of this
// authority: verify determines whether clients must have one.
func (a *Authority) Server(own tls.Certificate, verify tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: a.Pool, ClientAuth: verify, MinVersion: tls.VersionTLS13}
}

// sign makes a certificate. The first one is the authority's own, which is self-signed.
func (a *Authority) sign(c *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	c.SerialNumber = big.NewInt(serial.Add(1))
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := c, any(key)
	if a.own != nil {
		parent, by = a.own.Leaf, a.own.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	a.must(err)
	leaf, err := x509.ParseCertificate(der)
	a.must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *Authority) write(file, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	a.must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("the test's certificates: %v", err)
	}
}
