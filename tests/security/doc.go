// Package security tries what an attacker can do: on real etcd processes that require TLS and
// client certificates, and give each user exactly the permissions of a role; and on nodes of a
// leader-elected service that trust only each other.
//
// # Permissions
//
// Participants in the election "svc" need permission on its range, ["svc/", "svc0"), and on nothing
// else:
//
//	observe, list, resolve    read
//	campaign, lead, evict     read and write
//	guarded access to a key   as for the key without a guard, and read on the range
//
// TestPermissions shows that these are enough, and that less is refused with an error that contains
// the reason, and with nothing changed: no key, no revision, no lease.
//
// # Not covered here
//
// The effects of names and values on terminals and pages (cmd/eldest), and invalid messages to a
// node's socket (package curator, with its fuzz targets). Whether etcd's authentication works.
//
// Certificates are made by the test and are valid for an hour.
package security
