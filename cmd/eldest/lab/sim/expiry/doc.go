// Package expiry tests in virtual time what takes long only because leases must expire: the library
// with the real etcd server and client of package rig, where a lease of ten seconds expires in
// microseconds and every instant is exact. It has nothing but tests.
//
// A test belongs here if it waits for deadlines, leases and pauses, and needs neither processes nor
// a second member of etcd. Tests that need those, or the system's clocks, are in the tested
// packages.
//
// The tests run one after another, each in a world of its own: there is one bubble at a
// time in a process.
package expiry
