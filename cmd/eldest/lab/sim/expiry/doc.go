// Package expiry runs in virtual time what takes long only because leases have to run out:
// the library on the real etcd server and client of package rig, where a lease of ten
// seconds expires in microseconds and every instant is exact. It has nothing but tests.
//
// A test belongs here if it waits for deadlines, leases and pauses, and needs neither
// processes nor a second member of etcd. Tests beside the packages themselves have those,
// and the clocks of the system.
//
// The tests run one after another, each in a world of its own: there is one bubble at a
// time in a process.
package expiry
