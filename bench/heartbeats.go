package bench

import (
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

var heartbeats = Scenario{
	Name:    "heartbeats",
	Summary: "what heartbeats cost etcd: N sessions that lead, with heartbeats and without",
	Defaults: Options{
		Rounds: 3, For: 10 * time.Second, Sizes: []int{1, 10, 100}, TTLs: []time.Duration{10 * time.Second},
		Contenders: []string{contender.Eldest, contender.Heartbeat1s, contender.Heartbeat500ms},
	},
	Regimes: []Term{
		{Name: "lead", Text: "N sessions on one client lead an election each, without successors"},
	},
	Metrics: []Term{
		{Name: "writes", Text: "writes of all sessions in one minute", Better: Lower},
		{Name: "database", Text: "bytes by which the database of each member grows in one minute, without compaction", Better: Lower},
		{Name: "members-cpu", Text: "processor time of all members in one second", Better: Lower},
		{Name: "client-cpu", Text: "that of the client's process in one second", Better: Lower},
	},
	measure: measureHeartbeats,
}

func measureHeartbeats(r *run) {
	ttl := r.granted(r.options.TTLs[0])
	r.measure(r.points(point{cold: true, timeout: turnTimeout + r.options.For}, 30*time.Millisecond, "lead"), func(t *turn) {
		on := host{t.local()}
		var elections []string
		for range t.point.n {
			elections = append(elections, t.election())
		}
		t.parallel(t.point.n, func(i int) { must(t.candidate(on, elections[i], ttl).campaign(t.ctx)) })
		t.sleep(time.Second) // wait until the set-up is in the members' metrics and on their disks
		before := t.usage(on)
		t.sleep(t.options.For)
		used := t.usage(on).minus(before)
		perMinute := func(n float64) int64 { return int64(n/used.took.Minutes() + 0.5) }
		t.counted("writes", perMinute(float64(used.wire[writes])))
		t.took("client-cpu", used.perSecond(used.cpu.Seconds()))
		if used.members != nil {
			t.took("members-cpu", used.perSecond(used.members[cpuSeconds]))
			t.sample("database", Bytes, max(0, perMinute(used.members[databaseBytes]/float64(max(1, t.site.Members)))))
		}
	})
}
