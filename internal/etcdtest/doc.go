// Package etcdtest gives tests real etcd: clusters of one, three or five members,
// each a process of its own, and the faults to go with them. It is built from this
// repository; nothing is downloaded.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) } // shared cluster, leak check
//
//	func TestOne(t *testing.T) {
//		c := etcdtest.Shared(t)                            // one member, for most tests
//		cli := c.Client(t)                                 // closed with the test
//	}
//
//	func TestFaults(t *testing.T) {
//		c := etcdtest.Start(t, etcdtest.Config{Members: 3})
//		h := c.Host(t)                                     // a client with a network of its own
//		require.NoError(t, c.Cut(0))                       // member 0 from all others
//		h.Cut()                                            // this client from all members
//		h.Proxy(1).SwallowNextReply(ctx, nil)              // a reply that never arrives
//	}
//
// Examples and TestMain, which have no testing.TB, use New, Close, Dial and NewHost.
//
// # Not guaranteed
//
// Isolation between tests of one package on the Shared cluster: use names of one's
// own, and a cluster of one's own for faults and for compaction. Durability over a
// power loss: members do not wait for the disk, and where there is a /dev/shm the
// data is in memory (Config.Fsync and Dir change that). Exact times: everything shares
// the machine's few processors.
//
// # Members
//
// A member's faults are those of a process: Kill (SIGKILL), Stop and Cont (SIGSTOP,
// SIGCONT), Restart with its data on the same ports; and Replace, which puts a new
// member without data in its place. The members reach each other
// through a fabric inside the member processes, so that Cluster.Cut, CutOneWay and
// Mend separate everything that members say to each other, the forwarded renewals of
// leases included. Held counts what did not get through.
//
// # Clients
//
// Between a Host's client and each member stands a Proxy, a TCP proxy in this
// process. It delays either direction, drops or holds either direction, resets
// connections, refuses new ones, and swallows the reply of one request while the
// request itself gets through. Its Stats prove that the fault was met. WithTxns puts a
// test between a program and its transactions, to refuse, delay or lose just one. A Recorder
// counts and keeps the requests of a client, and the watch events it was given, so
// that a test can assert "one round trip" instead of timing it.
//
// # Times
//
// The default timeouts, a heartbeat of 10 ms and an election timeout of 100 ms,
// allow leases of one second (etcd grants at least 1.5 election timeouts, rounded
// up to seconds) and elect a new etcd leader in about 200 ms. A cluster of three is up in
// 110 to 200 ms, one of five in 170 to 250 ms.
//
// # Waiting
//
// Context, Take, Eventually and Never wait for what must happen, or must not, for Patience at
// the most, which is the same for all tests. Election is a name that no other test has.
//
// An Authority signs certificates, for an etcd or for nodes that want TLS.
//
// # Nothing is left
//
// The members of a process that dies, however it dies, die with it: they end with
// their stdin, the kernel kills them where it can, and a tiny watchman removes the
// data directory. The member binary stays in the user's cache directory, under a
// name made from the sources it was built from; older ones are removed. Whoever has the
// command that runs a member names it in Config.Command and builds nothing.
package etcdtest
