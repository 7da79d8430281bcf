// Package memberproc is one etcd member as a process of its own, which a parent process can kill,
// stop, restart and partition. "eldest etcd member" runs it, and so do the clusters of tests.
//
// # Life
//
// The member's argument is a file with etcd's own configuration, as JSON, with the peers that it reaches
// through the fabric ("routes", see Route), and with the links that are cut from the start on ("cut").
// When it serves requests it prints one JSON line, {"ready":true,"id":"8e9e05c52164694d",...}, on stdout.
// The end of stdin ends the process at once, without a shutdown, so that members end with a parent that
// dies. (A member that is stopped by SIGSTOP cannot notice that; where the kernel can kill it as well, the
// parent asks the kernel to do so.)
//
// # Another etcd
//
// If the file names an etcd ("etcd", the path of its binary), the member runs that one, as a child
// process with the same file, in place of the embedded server. The versions from 3.4 on ignore the
// fields that they do not know. The member prints {"child":4711}, the child's process ID, before
// anything else. The kernel kills the child when the member's process ends, so this needs Linux. A
// parent that stops the member must stop the child as well.
//
// # Commands
//
// One JSON object per line on stdin, answered by one per line on stdout:
//
//	{"seq":1,"cut":[{"from":"m1","to":"m2"}]}   the whole set of cut links
//	{"seq":1,"ok":true,"held":[{"from":"m1","to":"m2","count":17}]}
//
// # The fabric
//
// The members are configured with peer addresses that lead nowhere, such as http://192.0.2.1:2380. What
// a member sends to its peers goes through a forward proxy inside the same process, the fabric, which
// maps those addresses to the real ones: etcd's peer transports use HTTP_PROXY, but never for loopback
// addresses. The fabric knows the sender (itself) and the receiver of everything, so it can hold back
// each direction of each link: Raft's messages, snapshots, and the renewals of leases that a follower
// passes on to its leader, which the server's own CutPeer does not block.
//
// What is held back is not lost: as with TCP over a broken network, it arrives after the link is
// restored, if both ends still exist.
package memberproc
