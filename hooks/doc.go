// Package hooks puts the hooks of lease, election and observe to use: several told at
// once (Tee), and a logger that is told (Log).
//
// Not guaranteed: that a hook hears of everything. The rooms call their hooks one at a
// time, in order, on a goroutine of their own, never on the protocol's; behind a hook
// that blocks at most a thousand calls wait, and what comes after that is dropped and
// counted (Session.Dropped, Candidate.Dropped, Observer.Dropped).
//
// # A set
//
// Whoever wants to know about an election wants to know of three things: the session, the
// candidate and the observer. A Set is the hooks for all three. Package metrics and
// package traces, which are modules of their own, return one each, and so does Log:
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
// Tee keeps order. For each event the hooks are called one after another, in the order in
// which they were given, and the next event is told when all have returned: so they may
// rely on what an earlier one has noted, and one that blocks holds up the others.
// Whoever cannot promise to return belongs behind a queue of his own, or last. A panic in
// one ends the process, as it does in any goroutine.
//
// # A log
//
// Log writes a line for each event, with the election, and key, token, lease and reason
// where they apply; reason is a word (see Cause and Trouble), error the whole text. What is worth waking up for is a warning: a request that failed and is repeated
// (attempts 1, 2, 4, 8 and so on of a row), a renewal that failed,
// leadership or a place in the queue that was lost, a watch that broke, a foreign key.
// What happens every few seconds is at debug level. The attributes are the same for all
// lines, so that a search for a token finds a tenure from its beginning to its end.
package hooks
