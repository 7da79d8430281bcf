package endpoints

import (
	"maps"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// set is the client's set of endpoints. Only the follower's goroutine uses it.
type set struct {
	client  *clientv3.Client
	probing clientv3.Config // of the clients for probes
	tls     bool            // the connections use TLS
	every   time.Duration
	cluster uint64 // of the first list
	// Invariant: configured is not empty, and current begins with it.
	configured, current []string
	added               []reached        // members, by the URL that is an endpoint
	named               []reached        // members that configured endpoints have reached
	failed              map[uint64]retry // members that were not added
}

// retry is when a member is probed again: after a pause that doubles, from the time after which
// members are requested after failures, to longest times the usual one.
type retry struct {
	at    time.Time
	pause time.Duration
}

const longest = 10

func newSet(client *clientv3.Client, probing clientv3.Config, tls bool, every time.Duration) *set {
	configured := probing.Endpoints
	return &set{
		client: client, probing: probing, tls: encrypted(configured[0], tls), every: every,
		configured: configured, current: configured, failed: make(map[uint64]retry),
	}
}

// update makes the endpoints those for a list of members.
func (s *set) update(l list) {
	if l.cluster == 0 || s.cluster != 0 && l.cluster != s.cluster {
		return
	}
	s.cluster = l.cluster
	switch now := s.client.Endpoints(); {
	case len(now) == 0: // etcd's Sync can do that
		s.client.SetEndpoints(slices.Clone(s.current)...)
	case !slices.Equal(now, s.current):
		s.configured, s.current, s.added, s.named = now, now, nil, nil // the program has set them
	}
	gone := func(id uint64) bool {
		return !slices.ContainsFunc(l.members, func(m member) bool { return m.id == id })
	}
	s.added = slices.DeleteFunc(s.added, func(r reached) bool { return gone(r.id) })
	s.named = slices.DeleteFunc(s.named, func(r reached) bool { return gone(r.id) })
	maps.DeleteFunc(s.failed, func(id uint64, _ retry) bool { return gone(id) })
	s.add(s.missing(l))
	next := slices.Clone(s.configured)
	for _, r := range s.added {
		next = append(next, r.endpoint)
	}
	if !slices.Equal(next, s.current) {
		s.current = next
		s.client.SetEndpoints(slices.Clone(next)...)
	}
}

// missing returns the members to which no endpoint leads, and for which it is time to be probed.
func (s *set) missing(l list) (missing []member) {
	for _, m := range l.members {
		if !has(s.added, m.id) && !has(s.named, m.id) && !s.configures(m.urls) && !time.Now().Before(s.failed[m.id].at) {
			missing = append(missing, m)
		}
	}
	return missing
}

func has(members []reached, id uint64) bool {
	return slices.ContainsFunc(members, func(r reached) bool { return r.id == id })
}

// configures reports whether one of a member's URLs has the address of a configured endpoint.
func (s *set) configures(urls []string) bool {
	return slices.ContainsFunc(urls, func(u string) bool {
		return slices.ContainsFunc(s.configured, func(c string) bool { return address(c) == address(u) })
	})
}

// add adds members, if they can be reached, and are not by a configured endpoint. It adds none while
// no endpoint answers: what a URL leads to can only be judged beside these.
func (s *set) add(missing []member) {
	if len(missing) == 0 {
		return
	}
	var urls []string
	if s.named = s.probe(s.current); len(s.named) > 0 {
		s.named = slices.DeleteFunc(s.named, func(r reached) bool { return !slices.Contains(s.configured, r.endpoint) })
		urls = s.urls(missing)
	}
	for _, r := range s.probe(urls) {
		expected := slices.ContainsFunc(missing, func(m member) bool { return m.id == r.id && slices.Contains(m.urls, r.endpoint) })
		if expected && !has(s.added, r.id) {
			s.added = append(s.added, r)
		}
	}
	for _, m := range missing {
		if has(s.added, m.id) {
			delete(s.failed, m.id)
			continue
		}
		// Also if a configured endpoint has reached it: a balancer reaches another one the next time.
		pause := min(max(2*s.failed[m.id].pause, s.every/sooner), longest*min(s.every, math.MaxInt64/longest))
		s.failed[m.id] = retry{time.Now().Add(pause), pause}
	}
}

// urls returns the URLs that may be tried of the members that no configured endpoint has reached.
func (s *set) urls(missing []member) (urls []string) {
	for _, m := range missing {
		for _, u := range m.urls {
			if !has(s.named, m.id) && encrypted(u, s.tls) == s.tls {
				urls = append(urls, u)
			}
		}
	}
	return urls
}
