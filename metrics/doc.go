// Package metrics exports an election to Prometheus: one collector for each participant, which gets
// its data from hooks and from the session, the candidate and the observers that call them; and a
// second one for each node of a service (package curator), which counts its calls.
//
// Not guaranteed: that a counter includes the newest events. The hooks that count run off the
// protocol's goroutine, a little later; behind a hook that blocks they do not run
// (eldest_hooks_dropped_total). Gauges do not depend on hooks: they are computed at each scrape,
// from the session's own deadline, so a process that was stopped past its deadline never shows that
// it leads.
//
//	numbers := metrics.New("nightly-jobs")
//	registry.MustRegister(numbers)
//	told := numbers.Hooks()
//	session, err := lease.Open(ctx, lease.Config{Lease: client, Hooks: told.Session})
//	candidate, err := election.New(election.Config{…, Hooks: told.Candidate})
//	observer, err := observe.New(observe.Config{…, Hooks: told.Observer})
//
//	numbers.AttachCandidate(session, candidate)
//
// For an elector or a curator the hooks go into elector.Config (Session.Hooks, Candidate.Hooks,
// Observer.Hooks), and after Attach the state is computed from its status. Programs with hooks of
// their own combine both with hooks.Tee.
//
// A collector of its own counts the calls of a curator:
//
//	calls := metrics.NewService("orders")
//	registry.MustRegister(calls)
//	c, err := curator.New(curator.Config{…, Hooks: calls.Hooks()})
//
//	calls.Attach(c)
//
// A program with a hook of its own calls both in one function: curator.Hooks has one field. Package
// traces does not use it, so both packages can be used with one curator.
//
// Each call counts once, at the node that the caller has called. A call that this node has
// forwarded also counts at the leader, there as a hop. Methods are no labels, because callers could
// make any number of them.
//
// A registry accepts any number of elections: each series has the label "election". Two
// participants of one election in one process need a label of their own
// (prometheus.WrapRegistererWith). A scrape sends nothing to etcd.
//
// docs/observability/metrics.md has the names, labels and meanings of all metrics, and what each of
// them means for an operator; a test compares it with the code. Every label value exists from the
// start, with 0, so that the first increase is visible.
package metrics
