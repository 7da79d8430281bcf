package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"

	"github.com/eldest-io/eldest/elector"
)

// files has the names of the PEM files of a node: all of them, or none.
type files struct {
	cert, key, cacert string
}

// credentials returns the credentials of the listener, and those with which the node dials a
// leader; both are nil, for plain text, if there are no files.
//
// A node presents its certificate on both sides. As a client it accepts a leader only with a
// certificate for the leader's node ID, so that a process that takes over the leader's address, or
// writes another one into etcd, receives nothing. As a server it verifies the certificates that are
// presented and requires none of clients, so VerifyHop must require a node's certificate for a hop;
// a service that is for known clients only sets tls.RequireAndVerifyClientCert instead, and needs
// no VerifyHop.
func (f files) credentials() (server credentials.TransportCredentials, peer func(elector.Leader) credentials.TransportCredentials, err error) {
	switch {
	case f == files{}:
		return nil, nil, nil
	case f.cert == "" || f.key == "" || f.cacert == "":
		return nil, nil, errors.New("--cert, --key and --cacert must be set together")
	}
	own, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, nil, err
	}
	pem, err := os.ReadFile(f.cacert)
	if err != nil {
		return nil, nil, err
	}
	signers := x509.NewCertPool()
	if !signers.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s contains no certificate", f.cacert)
	}
	server = credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13,
		ClientCAs: signers, ClientAuth: tls.VerifyClientCertIfGiven,
	})
	peer = func(leader elector.Leader) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13,
			RootCAs: signers, ServerName: leader.NodeID,
		})
	}
	return server, peer, nil
}
