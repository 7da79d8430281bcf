package etcdtest

import (
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Host is a participant's machine: it reaches the cluster through a network of its own, with a
// proxy for each of its members. The faults of these proxies affect no other host. Its methods may
// be called from many goroutines.
type Host struct {
	cluster *Cluster
	proxies map[int]*Proxy
	members []int
}

// NewHost makes a host that can reach the given members, or all of them if none is given. The
// caller must Close it, after its clients.
func (c *Cluster) NewHost(members ...int) (*Host, error) {
	if len(members) == 0 {
		for i := range c.members {
			members = append(members, i)
		}
	}
	h := &Host{cluster: c, proxies: make(map[int]*Proxy), members: members}
	for _, i := range members {
		p, err := newProxy(c.members[i].Endpoint)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		h.proxies[i] = p
	}
	return h, nil
}

// Host is NewHost for tests: the host is closed with the test.
func (c *Cluster) Host(t testing.TB, members ...int) *Host {
	t.Helper()
	h, err := c.NewHost(members...)
	if err != nil {
		t.Fatalf("making a host: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing a host: %v", err)
		}
	})
	return h
}

// Endpoints are the URLs at which this host reaches its members.
func (h *Host) Endpoints() []string {
	var eps []string
	for _, i := range h.members {
		eps = append(eps, h.proxies[i].Endpoint)
	}
	return eps
}

// Dial returns a client on this host, of all its members. The caller closes it.
func (h *Host) Dial(with ...func(*clientv3.Config)) (*clientv3.Client, error) {
	return dial(h.Endpoints(), with)
}

// Client is Dial for tests: the client is closed with the test.
func (h *Host) Client(t testing.TB, with ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	return clientFor(t, h.Endpoints(), with)
}

// Proxy is the proxy between this host and member i; nil if this host cannot reach that member.
func (h *Host) Proxy(i int) *Proxy { return h.proxies[i] }

// Cut is Proxy.Drop(BothWays) on all proxies: a black hole around the host.
func (h *Host) Cut() { h.Drop(BothWays) }

// Drop is Proxy.Drop on all proxies.
func (h *Host) Drop(d Direction) { h.each(func(p *Proxy) { p.Drop(d) }) }

// Hold is Proxy.Hold on all proxies.
func (h *Host) Hold(d Direction) { h.each(func(p *Proxy) { p.Hold(d) }) }

// Delay is Proxy.Delay on all proxies.
func (h *Host) Delay(inbound, outbound time.Duration) {
	h.each(func(p *Proxy) { p.Delay(inbound, outbound) })
}

// Refuse is Proxy.Refuse on all proxies.
func (h *Host) Refuse() { h.each((*Proxy).Refuse) }

// Mend is Proxy.Mend on all proxies.
func (h *Host) Mend() { h.each((*Proxy).Mend) }

// Reset is Proxy.Reset on all proxies; it returns how many connections there were.
func (h *Host) Reset() int {
	n := 0
	h.each(func(p *Proxy) { n += p.Reset() })
	return n
}

// Stats adds up the counts of all proxies.
func (h *Host) Stats() Stats {
	var sum Stats
	h.each(func(p *Proxy) {
		s := p.Stats()
		sum.Accepted += s.Accepted
		sum.Refused += s.Refused
		sum.Reset += s.Reset
		sum.Swallowed += s.Swallowed
		sum.Passed.sum(s.Passed)
		sum.Dropped.sum(s.Dropped)
		sum.Held.sum(s.Held)
		sum.Delayed.sum(s.Delayed)
	})
	return sum
}

// Close ends the host's proxies and waits for them. A second Close does nothing.
func (h *Host) Close() error {
	var errs []error
	h.each(func(p *Proxy) { errs = append(errs, p.close()) })
	return errors.Join(errs...)
}

func (h *Host) each(f func(*Proxy)) {
	for _, i := range h.members {
		if p := h.proxies[i]; p != nil {
			f(p)
		}
	}
}

func (n *Pieces) sum(m Pieces) {
	n.Inbound += m.Inbound
	n.Outbound += m.Outbound
}
