package curator

import (
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Listener accepts connections of callers and other nodes, with credentials of its own.
type Listener struct {
	net.Listener
	// Credentials are the credentials of its connections. nil means plain text. Connections in
	// plain text, such as those of a Unix socket, show no certificate: Caller returns none, and a
	// hop cannot be verified there (see Config.VerifyHop).
	Credentials credentials.TransportCredentials
}

// checkListeners returns an error unless the node can serve on all of Config.Listeners.
func (c *Config) checkListeners() error {
	if len(c.Listeners) == 0 {
		return invalid("Config.Listeners is empty")
	}
	for i, l := range c.Listeners {
		if isNil(l.Listener) {
			return invalid("Config.Listeners[%d] is nil", i)
		}
		same := func(other Listener) bool { return other.Listener == l.Listener }
		if reflect.ValueOf(l.Listener).Comparable() && slices.ContainsFunc(c.Listeners[:i], same) {
			return invalid("Config.Listeners[%d], at %v, is in the list twice", i, l.Addr())
		}
	}
	if !c.secure() || c.PeerCredentials != nil {
		return nil
	}
	if err := secured(c.PeerOptions); err != nil {
		return invalid("a listener has Credentials, but Config.PeerCredentials is not set, and Config.PeerOptions has no credentials: followers would call leaders in plain text (set insecure.NewCredentials() if this is intended): %v", err)
	}
	return nil
}

// secure reports whether any listener has credentials.
func (c *Config) secure() bool {
	return slices.ContainsFunc(c.Listeners, func(l Listener) bool { return l.Credentials != nil })
}

// reachable returns the address of the listener that other nodes dial, in the form that gRPC dials:
// the first listener that is not a Unix socket, which other machines cannot dial, or the first one.
func (c *Config) reachable() (string, error) {
	local := func(l Listener) bool { _, is := l.Addr().(*net.UnixAddr); return is }
	at := max(0, slices.IndexFunc(c.Listeners, func(l Listener) bool { return !local(l) }))
	addr := c.Listeners[at].Addr()
	switch a := addr.(type) {
	case *net.TCPAddr:
		if a.IP.IsUnspecified() {
			return "", invalid("Config.Elector.Address is empty, and other nodes cannot dial the address of Config.Listeners[%d], %v", at, addr)
		}
	case *net.UnixAddr:
		if !filepath.IsAbs(a.Name) {
			return "", invalid("Config.Elector.Address is empty, and the address of Config.Listeners[%d], %q, is not an absolute path", at, a.Name)
		}
		return "unix://" + a.Name, nil
	}
	return addr.String(), nil
}

// isNil reports whether l is nil or contains a nil pointer.
func isNil(l net.Listener) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// servers are the gRPC servers of a node, one for each listener, because gRPC's credentials belong
// to a server. They have the same services, handlers and options. What a node counts is counted for
// a connection or for the node, never for a server.
//
// One server whose credentials choose by connection would have to wrap the connections that are
// accepted, and gRPC sets TCP_USER_TIMEOUT only on connections that are not wrapped.
type servers []*grpc.Server

func newServers(on []Listener, options []grpc.ServerOption) servers {
	all := make(servers, len(on))
	for i, l := range on {
		own := options[:len(options):len(options)]
		if l.Credentials != nil {
			own = append(own, grpc.Creds(l.Credentials))
		}
		all[i] = grpc.NewServer(own...)
	}
	return all
}

// RegisterService registers a service with all of them; see grpc.ServiceRegistrar.
func (s servers) RegisterService(desc *grpc.ServiceDesc, impl any) {
	for _, server := range s {
		server.RegisterService(desc, impl)
	}
}

// serve accepts connections until the servers are stopped. The channel receives the error of each
// listener that has failed before.
func (s servers) serve(on []Listener) <-chan error {
	failed := make(chan error, len(s))
	for i, server := range s {
		go func() {
			if err := server.Serve(on[i].Listener); err != nil {
				failed <- fmt.Errorf("the listener at %v failed: %w", on[i].Addr(), err)
			}
		}()
	}
	return failed
}

// each calls stop for all of them at the same time, and returns a channel that is closed when all
// calls have returned.
func (s servers) each(stop func(*grpc.Server)) <-chan struct{} {
	var running sync.WaitGroup
	for _, server := range s {
		running.Go(func() { stop(server) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	return done
}
