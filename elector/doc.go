// Package elector keeps a node in its election: session, campaign, lead, lose, back
// off, and again, until it is told to stop. It publishes what the node is.
//
// Not guaranteed: that somebody leads while etcd has no quorum, nor that a status is
// still true when it has been read. Whoever writes as a leader writes through the
// tenure's guard (G4); the status is for routing, for health checks and for people.
//
// # The status
//
//	Leading    this node leads, with this key and this token
//	Following  another node leads, and this is what it says of itself
//	Unknown    all else, with the reason
//
// From New on it is Unknown, until there is proof of something else. It is never two
// of them, and a node never follows itself: while its own key is the eldest and the win
// is not proven yet, it is Neither. A status that has been handed out never changes.
//
// Elector.Status reads the clock. In a process that was stopped past its deadline the
// first look says Unknown already, and so does a follower's whose place in the queue is
// past its deadline: it may have missed anything.
//
// # A round
//
//	Config.Source -> session -> register -> wait, following -> win -> lead
//	  -> lead's context ends -> Unknown -> lead returns -> session closed -> back-off
//
// Each round has a lease, a key and a token of its own; nothing of a tenure outlives
// it. The clients come from Config.Source, round by round: they may not be ready yet,
// and may be others the next time. No round asks etcd in a loop: what waits, waits in
// one of the rooms below, with their back-off.
//
// # The end of a tenure
//
// The order is the point. First the lead function's context ends, so that nothing new
// is begun; then the status is Unknown, so that nobody is routed here; then the
// function is waited for, with the key still in place, so that no successor runs beside
// it; then the session is closed, and the successor leads, in milliseconds. Where it
// was etcd that ended the tenure, or the deadline, the successor is not waited for by
// anybody: then the function's context has ended before the successor's can begin (G3).
//
// # Earlier lives
//
// Each elector is an instance, with an ID of its own beside its NodeID. It removes the keys
// that its own earlier rounds left. A process that crashed leaves its key until the lease
// expires, and by default the next instance of the same node waits for that as all other
// candidates do: from the key it cannot tell an instance that crashed from one that runs.
// Where only one runs at a time, Config.TakeOver has the next instance remove the key.
//
// # Many elections
//
// A Group keeps a node in any number of elections with one session: one lease, one stream of
// renewals, and for each election one goroutine, which the caller gives it. It publishes no
// status: a lead function knows that it leads, and package observe who else does.
package elector
