// Package storm tests the service layer under faults that do not pause: nodes of "eldest
// service node", each a process of its own, on an etcd of three members that are processes
// as well, and two clients, one of which asks for more than its share. Once a second, drawn
// from a seed that is printed, one of these is done:
//
//	the leader is killed          SIGKILL; the node is started again soon after
//	the leader is stopped         SIGTERM; the same
//	leadership is transferred     to another candidate, as "eldest transfer" does it
//	a follower is killed          SIGKILL
//	the leader is suspended       SIGSTOP, for longer than its lease, then SIGCONT
//	the leader's key is deleted   by hand, in etcd
//
//	go test ./internal/storm -v -storm.for 15s
//	go test ./internal/storm -v -storm.for 5m -storm.seed 7 -timeout 20m
//
// The modest client writes, reads, lists, writes on streams and uploads slowly, on a
// connection to each node and through package resolver, both ways. The greedy client holds
// streams that it does not read and streams whose handlers do not receive, begins uploads
// that never come, and sends large messages and crowds of small calls.
//
// # What must hold
//
// Package service audits the writes and the reads against everything that happened in etcd,
// by the rules of package oracle:
// every acknowledged write was applied once, none was applied of which the caller was told
// that nothing was, no deposed leader wrote, no read is stale.
//
// Package witness, which is built into the nodes, says of every call whether a handler was
// given it. So the promises to callers are judged exactly; the method class of call says
// how. Wrong are:
//
//	could have waited       UNAVAILABLE with the word that nothing was applied, of a call
//	                        that no handler was given, from a node that was not stopping,
//	                        before the call's deadline and before Config.Wait had passed
//	shed                    RESOURCE_EXHAUSTED for the modest client
//	no LostLeadership       UNAVAILABLE without one, though the node was neither dead nor
//	                        stopping nor suspended at any moment of the call
//	begun more than once    a handler was given the same call twice
//	answered by nobody      OK, and no handler was given the call
//	acknowledged in parts   a stream that acknowledged writes, and whose caller is told
//	                        that nothing was applied
//	of unknown outcome      UNAVAILABLE without that word, of a call that no handler was
//	                        given, while no node was killed or suspended
//	undocumented            any other code
//
// Excused are calls that were cut because the node that they were connected to was killed,
// stopped or suspended; calls that a handler had; calls that were in flight to a leader
// that was killed or suspended, whose outcome is unknown; and deadlines. All are counted and printed.
//
// A storm in which nothing happened is red: each fault must have taken effect, and each
// kind of call must have been answered all the time, on each route, through followers and
// by leaders. TestStormNoticesWhatIsWrong shows that the judge can convict: its nodes
// forget writes, repeat them, deny them, and break the promises to callers.
//
// # Not guaranteed
//
// That a seed repeats a storm. It repeats what is drawn; what the machine makes of it is
// another story each time. Nor is anything said of how long calls take, but for deadlines.
package storm
