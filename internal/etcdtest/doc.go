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
//		h.SwallowNextReply(nil)                            // a reply that never arrives
//	}
//
// Examples, which have no testing.TB, use ForExample; TestMain uses New, Close, Dial and NewHost.
//
// # Not guaranteed
//
// Isolation between tests of one package on the Shared cluster: a test must use names of its own,
// and a cluster of its own for faults and for compaction. Durability over a power loss: members do
// not wait for the disk, and where there is a /dev/shm the data is in memory (Config.Fsync and Dir
// change that). Exact times: all processes share the machine's few processors.
//
// # Members
//
// A member's faults are those of a process: Kill (SIGKILL), Stop and Cont (SIGSTOP, SIGCONT),
// Restart with its data on the same ports; and Replace, which replaces it by a new member without
// data. The members connect to each other through a fabric inside the member processes, so that
// Cluster.Cut, CutOneWay and Mend apply to all messages between members, including the forwarded
// renewals of leases. Held counts the messages that were held back.
//
// # Another etcd
//
// The members run the embedded server. Config.Etcd, or ELDEST_ETCD in the environment, is the binary of
// another etcd, 3.4 or newer, which they run in its place; Member.Use sets it for one member, so that
// versions are mixed. All faults are the same. tests/etcdversions builds such binaries and runs the
// suites with them.
//
// # Clients
//
// A Proxy, a TCP proxy in this process, is between a Host's client and each member. It delays
// either direction, drops or holds either direction, resets connections, refuses new ones, and
// swallows the reply of one request while the request itself gets through. Its Stats prove that the
// fault took effect. WithTxns lets a test intercept the transactions of a program, to refuse, delay
// or lose just one. A Recorder counts and keeps the requests of a client and the watch events that
// it received, so that a test can assert "one round trip" instead of measuring the time.
//
// # Times
//
// The default timeouts, a heartbeat of 10 ms and an election timeout of 100 ms, allow leases of one
// second (etcd grants at least 1.5 election timeouts, rounded up to seconds). A new etcd leader is
// elected in about 200 ms. A cluster of three members is up in 110 to 200 ms, one of five in 170 to
// 250 ms.
//
// # Waiting
//
// Context, Take, Eventually and Never wait for at most Patience, which is the same for all tests.
// Election is a name that no other test has.
//
// An Authority signs certificates, for etcd or for nodes that use TLS.
//
// # Nothing is left
//
// When a process dies, in whatever way, its members die with it: they end with their stdin, the
// kernel kills them where it can, and a small watchman process removes the data directory. The
// member binary stays in the user's cache directory, under a name made from the sources it was
// built from; older ones are removed. Programs that have the command that runs a member set
// Config.Command and build nothing.
package etcdtest
