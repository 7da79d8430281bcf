// Package elector keeps a node in its election: it opens a session, campaigns, leads, loses
// leadership, backs off, and starts again until it is stopped. It publishes the node's status.
//
// Not guaranteed: that a node leads while etcd has no quorum, or that a status is still true when
// it has been read. A leader's writes to etcd go through the tenure's guard (G4); the status is for
// routing, health checks and people.
//
// # The status
//
//	Leading    this node leads, with this key and this token
//	Following  another node leads, with this identity from its value
//	Unknown    every other case, with the reason
//
// A new Elector is Unknown until another role is proven. A node is always in exactly one of the
// three states, and a node never follows itself: while its key is the eldest and the win is not
// proven yet, it is Unknown. A status that has been returned never changes.
//
// Elector.Status reads the clock. In a process that was stopped past its deadline the first call
// already returns Unknown. So it does in a follower whose position in the queue is past its
// deadline, because the follower may have missed events.
//
// # A round
//
//	Config.Source -> session -> register -> wait, following -> win -> lead
//	  -> lead's context ends -> Unknown -> lead returns -> session closed -> back-off
//
// Each round has its own lease, key and token; nothing of a tenure outlives its round. The clients
// come from Config.Source in each round: they may not be ready yet, and may differ from the
// previous ones. No round polls etcd: the waiting is done in the packages that elector uses, with
// their back-off.
//
// # Warm standby
//
//	register -> Config.Standby, told the leader and the position -> win
//	  -> its context ends -> it returns -> lead
//
// Config.Standby is a function that runs while the node waits: it fills caches, follows what the
// leader writes, opens connections. It never overlaps lead, and what it has written is visible to
// lead. Its Positions report the leader and the number of candidates ahead. They come from the watch
// that the elector has anyway, so they cost no request, and each departure ahead of the node is
// reported, not only that of its predecessor.
//
// # The end of a tenure
//
// The order is guaranteed. First the lead function's context ends, so that it begins nothing new.
// Then the status becomes Unknown, so that no requests are routed to this node. Then the elector
// waits for the function while the key still exists, so that no successor runs at the same time.
// Then the session is closed, and the successor leads within milliseconds. If etcd or the deadline
// ended the tenure, the successor does not wait: the function's context has then ended before the
// successor's can begin (G3).
//
// # Earlier instances
//
// Each elector is an instance, with an ID of its own beside its NodeID. It removes the keys that
// its own earlier rounds left. A process that crashed leaves its key until the lease expires, and
// by default the next instance of the node waits for that as all other candidates do: the key does
// not show whether its instance has crashed or is still running. If only one instance runs at a
// time, Config.TakeOver makes the next instance remove the key.
//
// # Many elections
//
// A Group keeps a node in any number of elections with one session: one lease, one stream of
// renewals, and for each election one goroutine, which the caller provides. A group publishes no
// status: a running lead function means that this node leads, and package observe returns the other
// leaders.
package elector
