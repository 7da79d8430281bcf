package bench

import "time"

// usage is what was used so far, or in a period.
type usage struct {
	at   time.Time
	took time.Duration
	wire wire          // of the clients of some hosts
	cpu  time.Duration // processor time of this process, 0 where it is unknown
	// members are the metrics of all members, nil where they cannot be read.
	members map[string]float64
}

// The names of etcd's metrics, as in etcd 3.4 to 3.7 with its default metrics: the watch events
// that a member sent, the messages that its gRPC server received (single requests as well as those
// on streams), its processor time, and the bytes of its database that are in use.
const (
	eventsSent       = "etcd_debugging_mvcc_events_total"
	messagesReceived = "grpc_server_msg_received_total"
	cpuSeconds       = "process_cpu_seconds_total"
	databaseBytes    = "etcd_mvcc_db_total_size_in_use_in_bytes"
)

// usage reads what was used so far.
func (t *turn) usage(hosts ...host) (u usage) {
	if t.site.Metrics != nil {
		var err error
		if u.members, err = t.site.Metrics(t.ctx); err != nil {
			t.note("the servers' metrics could not be read: %v", err)
			u.members = nil
		}
	}
	u.at, u.cpu, u.wire = time.Now(), processorTime(), must(wires(t.ctx, hosts...))
	return u
}

// perSecond converts seconds of processor time in the period to processor time per second.
func (u usage) perSecond(seconds float64) time.Duration {
	return time.Duration(seconds / u.took.Seconds() * float64(time.Second))
}

// minus is what was used since before.
func (u usage) minus(before usage) usage {
	since := usage{took: u.at.Sub(before.at), wire: u.wire.minus(before.wire), cpu: u.cpu - before.cpu}
	if u.members != nil && before.members != nil {
		since.members = map[string]float64{}
		for name, v := range u.members {
			since.members[name] = v - before.members[name]
		}
	}
	return since
}
