// Package metrics shows an election to Prometheus: one collector for each participant,
// fed by hooks and by the session, the candidate and the observers that it meets there; and
// a second one for each node of a service (package curator), which counts its calls.
//
// Not guaranteed: that a counter has counted what happened a moment ago. The hooks that
// count run off the protocol's goroutine, a little later; behind a hook that blocks they
// run not at all (eldest_hooks_dropped_total). Gauges do not depend on that: they are
// computed when they are scraped, from the session's own deadline, so a process that was
// stopped past it never shows that it leads.
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
// For an elector or a curator the hooks go into elector.Config (Session.Hooks,
// Candidate.Hooks, Observer.Hooks), and Attach has the state computed from its status.
// Whoever wants to hear of the hooks as well uses hooks.Tee.
//
// The calls of a curator are counted by a collector of their own:
//
//	calls := metrics.NewService("orders")
//	registry.MustRegister(calls)
//	c, err := curator.New(curator.Config{…, Hooks: calls.Hooks()})
//
//	calls.Attach(c)
//
// Each call counts once at the node that the caller has called. A call that this node has
// forwarded counts at the leader as well, there as a hop. Methods are no labels: callers could
// make as many as they like.
//
// A registry takes any number of elections: each series has the label "election". Two
// participants of one election in one process need a label of their own
// (prometheus.WrapRegistererWith). A scrape sends nothing to etcd.
//
// # The names
//
//	eldest_state                      what this participant is: leading, following, unknown
//	eldest_token                      the own token
//	eldest_leader_token               the token of whoever leads
//	eldest_session_remaining_seconds  for how long the lease is certain
//	eldest_session_ttl_seconds        the TTL that etcd granted
//	eldest_sessions_total             sessions opened
//	eldest_sessions_ended_total       sessions that ended, by cause
//	eldest_at_risk_total           rows of failed renewals
//	eldest_renewal_latency_seconds    what a renewal took
//	eldest_renewal_slack_ratio        how close it came
//	eldest_campaigns_total            places taken in the queue
//	eldest_candidacies_ended_total    candidacies that ended without a win, by cause
//	eldest_wins_total                 tenures begun
//	eldest_tenures_ended_total        tenures that ended, by cause
//	eldest_handover_wait_seconds      from the place in the queue to the win
//	eldest_handover_proof_seconds     from the predecessor's end to the win
//	eldest_queue_length               how many candidates stand
//	eldest_watch_restarts_total       watches that were opened again
//	eldest_observers                  observers that run
//	eldest_observer_subscriptions_total  subscriptions made
//	eldest_foreign_keys_total         keys in the range that are no candidate's
//	eldest_hooks_dropped_total        hook calls that were dropped
//	eldest_heartbeat_latency_seconds  what a heartbeat took
//	eldest_heartbeats_failed_total    heartbeats that were not acknowledged in time
//	eldest_heartbeats_refused         whether etcd does not permit them
//	eldest_leadership_remaining_seconds  for how long nobody else can lead
//	eldest_suspensions_total          tenures that were suspended
//	eldest_evictions_total            silent leaders that were evicted
//	eldest_service_calls_total        calls, by way and code
//	eldest_service_call_seconds       what a call took
//	eldest_service_wait_seconds       for how long it waited for a leader
//	eldest_service_refusals_total     calls that a node answered in the service's place
//	eldest_service_waiting_calls      calls that wait now
//	eldest_service_waiting_bytes      what is kept for them
//	eldest_service_calls_in_flight    calls that are served or forwarded now
//
// docs/observability/metrics.md says of each what it tells the operator; a test holds both
// lists against the code. Every label value is there from the start, with 0, so that the
// first increase is one.
package metrics
