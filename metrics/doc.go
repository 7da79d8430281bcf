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
// Each call counts once, at the node that the caller has called. A call that this node has
// forwarded also counts at the leader, there as a hop. Methods are no labels, because callers could
// make any number of them.
//
// A registry accepts any number of elections: each series has the label "election". Two
// participants of one election in one process need a label of their own
// (prometheus.WrapRegistererWith). A scrape sends nothing to etcd.
//
// # The names
//
//	eldest_state                      what this participant is: leading, following, unknown
//	eldest_token                      the participant's own token
//	eldest_leader_token               the leader's token
//	eldest_session_remaining_seconds  how long the lease is certain
//	eldest_session_ttl_seconds        the TTL that etcd granted
//	eldest_sessions_total             sessions opened
//	eldest_sessions_ended_total       sessions that ended, by cause
//	eldest_at_risk_total              series of failed renewals
//	eldest_renewal_latency_seconds    duration of a renewal
//	eldest_renewal_slack_ratio        certain time left after a renewal, as a part of the TTL
//	eldest_campaigns_total            positions taken in the queue
//	eldest_candidacies_ended_total    candidacies that ended without a win, by cause
//	eldest_wins_total                 tenures begun
//	eldest_tenures_ended_total        tenures that ended, by cause
//	eldest_handover_wait_seconds      from the position in the queue to the win
//	eldest_handover_proof_seconds     from the predecessor's end to the win
//	eldest_queue_length               candidates in the queue
//	eldest_watch_restarts_total       watches that were opened again
//	eldest_observers                  observers that run
//	eldest_observer_subscriptions_total  subscriptions made
//	eldest_foreign_keys_total         keys in the range that are no candidate's
//	eldest_hooks_dropped_total        hook calls that were dropped
//	eldest_heartbeat_latency_seconds  duration of a heartbeat
//	eldest_heartbeats_failed_total    heartbeats that were not acknowledged in time
//	eldest_heartbeats_refused         whether etcd does not permit them
//	eldest_leadership_remaining_seconds  how long no other candidate can lead
//	eldest_suspensions_total          tenures that were suspended
//	eldest_evictions_total            leaders that were evicted for missing heartbeats
//	eldest_service_calls_total        calls, by way and code
//	eldest_service_call_seconds       duration of a call
//	eldest_service_wait_seconds       how long a call waited for a leader
//	eldest_service_refusals_total     calls that a node answered in the service's place
//	eldest_service_waiting_calls      calls that wait now
//	eldest_service_waiting_bytes      message bytes that are kept for them
//	eldest_service_calls_in_flight    calls that are served or forwarded now
//
// docs/observability/metrics.md describes what each of them means for an operator; a test compares
// both lists with the code. Every label value exists from the start, with 0, so that the first
// increase is visible.
package metrics
