// Package security tries what somebody who should not can do: on real etcd processes that
// speak TLS with everybody, want certificates of their clients, and give each user the
// permissions of a role and no more; and on nodes of a leader-elected service that trust
// only each other.
//
// # Permissions
//
// Who takes part in the election "svc" needs permission on its range, ["svc/", "svc0"),
// and on nothing else:
//
//	observe, list, resolve    read
//	campaign, lead, evict     read and write
//	guarded access to a key   as for the key without a guard, and read on the range
//
// TestPermissions holds these to be enough, and everything less to be refused with an
// error that says so, and with nothing changed: no key, no revision, no lease.
//
// # Not covered here
//
// What names and values do to terminals and pages (cmd/eldest), and what can be said to a
// node on its socket (package curator, with its fuzz targets). That etcd itself keeps
// what its authentication promises.
//
// A member is this test binary, started again (member_test.go): etcdtest's members speak
// no TLS. Certificates are made on the spot, for an hour.
package security
