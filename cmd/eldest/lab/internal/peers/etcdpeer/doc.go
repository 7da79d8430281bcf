// Package etcdpeer has the three systems that elect a leader on etcd: Eldest, the package concurrency of
// etcd's own client, and client-go, the library of Kubernetes.
//
// Each has a cluster of its own, of three members with etcd's default settings. Their clients make all
// connections with [peer.ClientConfig.Net], with one exception: a keeper of Eldest is a process of its own.
//
// A log of an election is one key for each entry. The create revisions of the keys are the order in which
// etcd took the entries.
//
// # Not guaranteed
//
// That client-go does in Kubernetes what it does here. There its lock is an object of the API server; here
// it is the same object as one key of etcd.
package etcdpeer
