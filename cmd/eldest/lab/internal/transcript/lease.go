package transcript

import (
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// ttl formats a TTL; etcd returns 0 or less for a lease that does not exist.
func ttl(seconds int64) string {
	if seconds <= 0 {
		return "ttl " + decimal(seconds) + ": lease not found"
	}
	return "ttl " + decimal(seconds) + "s"
}

func sayGrant(r *etcdserverpb.LeaseGrantRequest, n names) string {
	return list("ttl "+decimal(r.TTL)+"s", when(r.ID != 0, "as "+n.lease(r.ID)))
}

func sayTimeToLive(r *etcdserverpb.LeaseTimeToLiveResponse, n names) []string {
	if r.TTL < 0 {
		return []string{n.lease(r.ID) + " " + ttl(r.TTL)}
	}
	remaining := ""
	if n.exact() {
		remaining = decimal(r.TTL) + "s remaining"
	}
	parts := []string{list(n.lease(r.ID)+" granted "+decimal(r.GrantedTTL)+"s", remaining)}
	for _, k := range r.Keys {
		parts = append(parts, key(k, n))
	}
	return parts
}

func sayLeases(r *etcdserverpb.LeaseLeasesResponse, n names) []string {
	parts := []string{decimal(int64(len(r.Leases))) + " leases"}
	for _, l := range r.Leases {
		parts = append(parts, n.lease(l.ID))
	}
	return parts
}
