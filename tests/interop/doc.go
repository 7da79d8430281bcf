// Package interop shows that candidates of Eldest share an election with etcd's other candidates:
// those of etcd's Go package, of etcdctl elect, and of the v3election service over gRPC.
//
// # Programs
//
// etcdctl is the command of go.etcd.io/etcd/etcdctl/v3, in the version of go.mod. It runs as a
// process of its own, which is this test binary, started again: its main function calls etcdctl's.
// The v3election service is that of the test cluster's member, and its client is generated code.
//
// # What is shown
//
//	TestOrder                   wins in the order of registration; all readers agree on the
//	                            leader, its token and its value; proclaim, resign
//	TestOneLeaderAtATime        all kinds campaign again and again, and never two of them lead
//	TestLeaderIsKilled          a leader that dies is succeeded when its lease has expired
//	TestWaiterLeaves            a waiter that leaves, or dies, makes no other candidate win
//	TestLeaderIsEvicted         what each kind does when its key is deleted
//	TestHeartbeatsBesideOthers  heartbeats evict no leader of another kind
//
// docs/interop.md describes the same for users.
package interop
