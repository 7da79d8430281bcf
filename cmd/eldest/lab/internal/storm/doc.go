// Package storm tests the service layer under continuous faults: nodes of "eldest service node",
// each in its own process, on an etcd of three members that are processes as well, and two clients,
// one of which uses more than its share. Once a second one of these faults is applied, drawn from a
// seed that is printed:
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
// The modest client writes, reads, lists, writes on streams and uploads slowly, on a connection to
// each node and through both resolvers of package resolver. The greedy client holds streams that it
// does not read and streams whose handlers do not receive, begins uploads that it never sends, and
// sends large messages and many small calls at once.
//
// # What must hold
//
// Package service audits the writes and the reads against everything that happened in etcd, by the
// rules of package oracle: every acknowledged write was applied once, no write was applied whose
// response was that nothing was applied, no deposed leader wrote, no read is stale.
//
// Package witness, which is built into the nodes, reports for every call whether a handler received
// it. So the guarantees to callers are checked exactly; see the method class of call. These results
// are violations:
//
//	could have waited       UNAVAILABLE with nothing_applied, of a call that no handler
//	                        received, from a node that was not stopping, before the
//	                        call's deadline and before Config.Wait had passed
//	shed                    RESOURCE_EXHAUSTED for the modest client
//	no LostLeadership       UNAVAILABLE without one, though the node was neither dead nor
//	                        stopping nor suspended at any moment of the call
//	begun more than once    a handler received the same call twice
//	answered, not begun     OK, and no handler received the call
//	acknowledged in parts   a stream that acknowledged writes, and whose caller receives
//	                        nothing_applied
//	of unknown outcome      UNAVAILABLE without nothing_applied, of a call that no handler
//	                        received, while no node was killed or suspended
//	undocumented            any other code
//
// Excused are calls that were cut because the node that they were connected to was killed, stopped
// or suspended; calls that a handler received; calls in flight to a leader that was killed or
// suspended, whose outcome is unknown; and deadlines. All are counted and printed.
//
// A storm in which nothing happened fails: each fault must have taken effect, and each kind of call
// must have been answered all the time, on each route, through followers and by leaders.
// TestStormNoticesWhatIsWrong shows that violations are found: its nodes lose writes, repeat them,
// deny them, and break the guarantees to callers.
//
// # Not guaranteed
//
// A seed may not repeat a storm: it repeats what is drawn, not the timing of the machine. The
// duration of calls is not checked, except for deadlines.
package storm
