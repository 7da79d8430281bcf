// Package hooks combines the hooks of lease, election and observe: Tee calls several hooks for each
// event, and Log writes events to a logger.
//
// Not guaranteed: that a hook is called for every event. The packages call their hooks one at a
// time, in order, on a goroutine of their own, never on the protocol's. Behind a hook that blocks
// at most a thousand calls wait; later calls are dropped and counted (Session.Dropped,
// Candidate.Dropped, Observer.Dropped).
//
// # A set
//
// Programs that monitor an election need the hooks of three objects: the session, the candidate and
// the observer. A Set has the hooks of all three. Package metrics and package traces, which are
// modules of their own, return one each, and so does Log:
//
//	told := hooks.Tee(hooks.Log(logger, "nightly-jobs"), numbers.Hooks(), spans.Hooks())
//	session, err := lease.Open(ctx, lease.Config{Lease: client, Hooks: told.Session})
//	candidate, err := election.New(election.Config{…, Hooks: told.Candidate})
//
// For an elector or a curator they go into elector.Config: Session.Hooks,
// Candidate.Hooks and Observer.Hooks.
//
// # A tee
//
// Tee keeps order. For each event the hooks are called one after another, in the order in which
// they were given, and the next event follows when all have returned. So a hook may rely on what an
// earlier one has done, and a hook that blocks delays the others. A hook that may block belongs
// behind a queue of its own, or last. A panic in one ends the process, as it does in any goroutine.
//
// # A log
//
// Log writes a line for each event, with the election, and key, token, lease and reason where they
// apply; reason is a word (see Cause and Trouble), error the whole text. Events that may need
// action are warnings: a request that failed and is repeated (attempts 1, 2, 4, 8 and so on of a
// row), a renewal that failed, leadership or a place in the queue that was lost, a watch that
// broke, a foreign key. Events that occur every few seconds are at debug level. The attributes are
// the same for all lines, so that a search for a token finds a tenure from its beginning to its
// end.
package hooks
