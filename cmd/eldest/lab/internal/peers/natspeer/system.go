package natspeer

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// timing is how long the leader's key lives, how often it is updated, or others try to create it, and how
// long each may take.
type timing struct{ ttl, interval, request time.Duration }

// settings: NATS documents no election. The defaults are those of nats-kv-leader-elect, whose shortest TTL is
// 30 s and which updates after three quarters of it, with the time limit of nats.go for requests.
var settings = map[string]timing{
	peer.Defaults: {ttl: 30 * time.Second, interval: 22500 * time.Millisecond, request: 5 * time.Second},
	peer.Shortest: {ttl: time.Second, interval: 500 * time.Millisecond, request: 400 * time.Millisecond},
}

// markerTTL is how long the server keeps the marker of a key that has expired, which watchers receive. It is
// the shortest that the server accepts.
const markerTTL = time.Second

// System is the election by a key-value bucket.
func System() peer.System {
	return peer.System{
		Name: "nats", Title: "NATS JetStream",
		Recipe: "A key in a bucket with three replicas and a TTL: Create to lead, Update with the revision of the last update to go on leading. The others watch the key, and try to create it when it is deleted or expires, and at each interval. " +
			"The leader has lost when an Update fails, as in nats-kv-leader-elect; nats.go has no election.",
		Links: []peer.Link{
			{Text: "nats-kv-leader-elect", URL: "https://github.com/ripienaar/nats-kv-leader-elect"},
			{Text: "JetStream key/value store", URL: "https://docs.nats.io/nats-concepts/jetstream/key-value-store"},
			{Text: "Expiry markers (ADR-48)", URL: "https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-48.md"},
		},
		Module: "github.com/nats-io/nats.go",
		Guard: "An entry is a message of the bucket's stream that names the last sequence of the leader's key (Nats-Expected-Last-Subject-Sequence-Subject): the server refuses it after another candidate has led. " +
			"Programs must do that themselves: the recipe has no guard.",
		Unfair: []string{
			"To its advantage: candidates watch the key; in nats-kv-leader-elect they only try at each interval, which is 22.5 s.",
			"To its advantage: a winner leads at once; in nats-kv-leader-elect it is told so one interval later, so that its predecessor has noticed its loss.",
			"To its advantage: the servers' limit of 1000 watches of a bucket, their default, is lifted.",
			"To its advantage: JetStream acknowledges a message that the majority has in memory; it is synchronised to disks every two minutes by default. etcd synchronises before it acknowledges.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {Loss: settings[peer.Defaults].ttl, Values: []string{
				"TTL 30 s (the shortest that nats-kv-leader-elect allows)",
				"updated and tried every 22.5 s (three quarters, its default)",
				"time limit of an update and of a try 5 s (the default of nats.go)",
				"expiry marker 1 s (the server's lower limit)",
			}},
			peer.Shortest: {Loss: settings[peer.Shortest].ttl, Values: []string{
				"TTL 1 s (our choice: the server's lower limit is 100 ms, and 1 s for the marker that watchers receive)",
				"updated and tried every 500 ms (our choice)",
				"time limit of an update and of a try 400 ms (our choice: a leader without a network has lost before its key expires)",
				"expiry marker 1 s (the server's lower limit)",
			}},
		},
		Start: start,
		Dial:  dial,
	}
}
