// Package zookeeper elects a leader in Apache ZooKeeper, by the leader election recipe of ZooKeeper's
// documentation, with the client go-zookeeper.
//
// Each candidate creates an ephemeral sequential node with a GUID in its name. The candidate with the
// lowest sequence number leads; each other one watches the node with the next lower number, and lists the
// nodes again when that one is deleted. ZooKeeper deletes the nodes of a session when the session expires.
//
// The servers are an ensemble of three, started from Debian's packages (zookeeper, which needs a Java
// runtime), each in a Java virtual machine of its own.
//
// # The client
//
// One connection, and so one session, for all candidates and observers of a process. A leader may believe
// that it leads while its session is connected, which is what Apache Curator advises: when a connection
// breaks, the leader cannot know whether the session still exists. If the same session is resumed, its node
// still exists, and the leader may believe so again.
//
// # Not guaranteed
//
//   - That two leaders never overlap: the client notices a broken connection two thirds of a session timeout
//     after the last message from the server, by a timer that stops with the process.
//   - That requests end with their context. The library's requests have no contexts; here the caller returns
//     and the request ends with the connection, or with the client.
//   - That a candidate whose context has ended leaves the queue before its client is closed.
//   - That Writes counts the entries that were made between its last call and a change of ZooKeeper's own
//     leader: the counter begins again with each leader.
package zookeeper
