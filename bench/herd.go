package bench

import "time"

var herd = Scenario{
	Name:     "herd",
	Summary:  "watch events delivered and requests made, by all clients, when one of N candidates leaves",
	Defaults: Options{Rounds: 5, Sizes: []int{10, 100, 1000}},
	Regimes: []Term{
		{Name: "departure", Text: "one candidate leaves while N wait"},
	},
	Metrics: []Term{
		{Name: "events", Text: "watch events that all candidates received when the leader resigned", Better: Lower},
		{Name: "reads", Text: "reads that all candidates made then", Better: Lower},
		{Name: "requests", Text: "all requests that they made then, without renewals", Better: Lower},
		{Name: "waiter-events", Text: "watch events when a candidate in the middle of the queue left", Better: Lower},
		{Name: "waiter-reads", Text: "reads that all candidates made then; of eldest's there are two", Better: Lower},
		{Name: "waiter-requests", Text: "all requests then, without renewals", Better: Lower},
		{Name: "server-events", Text: "watch events that the members sent when the leader resigned, to all clients", Better: Lower},
		{Name: "server-requests", Text: "requests that the members received then, including renewals and other users'", Better: Lower},
		{Name: "waiter-server-events", Text: "watch events that the members sent when a waiting candidate left", Better: Lower},
		{Name: "waiter-server-requests", Text: "requests that the members received then", Better: Lower},
	},
	measure: measureHerd,
}

// firstRenewals is when etcd's client has certainly sent the first renewal of a lease: it checks
// twice a second which renewals are due, and a new lease is due at once.
const firstRenewals = 700 * time.Millisecond

// measureHerd counts the cost of two departures: that of a candidate in the middle of the queue,
// and that of the leader. It counts what the clients of all candidates, including the one that
// leaves, send and receive until they are quiet. Periodic checks of a contender are counted if they
// happen in that time. A candidate that leaves stops its watch first; where the deletion overtakes
// that request, the candidate receives the deletion as well: one event more.
func measureHerd(r *run) {
	hosts := r.hostsOf(queueHosts)
	r.measure(r.points(point{cold: true, queue: true, timeout: turnTimeout}, 60*time.Millisecond, "departure"), func(t *turn) {
		n := t.point.n
		q := t.newQueue(hosts, n+2) // the leader, and one more than wait at the end
		// One group after the other, so that the order of the candidates is known.
		middle := q.members[1+n/2]
		for _, group := range [][]*member{q.members[:1], q.members[1 : 1+n/2], {middle}, q.members[2+n/2:]} {
			q.campaign(group...)
		}
		q.monitor.stop() // from here on only requests of the candidates are counted
		t.sleep(firstRenewals)
		leader := q.next()
		t.departure(hosts, "waiter-", func() { q.leave(middle) })
		t.departure(hosts, "", func() {
			check(leader.resign(t.ctx))
			q.next()
		})
	})
}

// departure counts the requests and events that leave causes.
func (t *turn) departure(hosts []host, prefix string, leave func()) {
	t.quiet(hosts...)
	before := t.usage(hosts...)
	leave()
	calm := t.quiet(hosts...)
	used := t.usage(hosts...).minus(before)
	t.counted(prefix+"events", used.wire[events])
	if used.members != nil {
		t.counted(prefix+"server-events", int64(used.members[eventsSent]))
	}
	if !calm {
		t.note("requests and reads cannot be measured: so many clients check their watches from time to time that they are never idle")
		return
	}
	t.counted(prefix+"reads", used.wire[reads])
	t.counted(prefix+"requests", used.wire.requests()-used.wire[renewals])
	if used.members != nil {
		t.counted(prefix+"server-requests", int64(used.members[messagesReceived]))
	}
}
