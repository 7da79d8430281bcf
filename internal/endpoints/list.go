package endpoints

import (
	"net/url"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// list is a list of members, of one cluster.
type list struct {
	cluster uint64
	members []member // that vote and have URLs
}

// member is a member of etcd. Invariant: id > 0.
type member struct {
	id   uint64
	urls []string
}

// read reads a reply of etcd. The zero list means that it cannot be used.
func read(resp *pb.MemberListResponse) list {
	l := list{cluster: resp.GetHeader().GetClusterId()}
	for _, m := range resp.GetMembers() {
		switch {
		case m.GetID() == 0:
			return list{} // of a gRPC proxy
		case m.GetName() != "" && !m.GetIsLearner() && len(m.GetClientURLs()) > 0: // a name: it has started
			l.members = append(l.members, member{m.GetID(), m.GetClientURLs()})
		}
	}
	return l
}

// encrypted reports whether a client with TLS in its config (tls), or without, uses TLS for an
// endpoint.
func encrypted(endpoint string, tls bool) bool {
	switch scheme, _, ok := strings.Cut(endpoint, ":"); {
	case ok && (scheme == "https" || scheme == "unixs"):
		return true
	case ok && scheme == "http":
		return false
	default:
		return tls
	}
}

// address is the part of an endpoint by which two of them are compared: host:port or a path.
func address(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return endpoint
}
