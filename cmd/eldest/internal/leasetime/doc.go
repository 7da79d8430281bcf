// Package leasetime asks etcd for the time that leases have left, and finds out from the answers
// whether a lease expired.
//
// etcd does not say why a key was deleted. A lease that expires and one that is revoked end in the
// same way: all keys that are attached to it are deleted at one revision. So the time that a lease had
// left before the deletion is the only evidence. See Tracker.
package leasetime
