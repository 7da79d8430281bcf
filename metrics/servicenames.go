package metrics

import (
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/curator"
)

// The ways of calls, in addition to those of curator.Way.
const (
	// hop is a call that another node has forwarded to this one. That node counts it as
	// "forwarded": the sum over all other ways is the number of calls that callers have made.
	hop = "hop"
)

var (
	served, forwarded, refused = curator.WayServed.String(), curator.WayForwarded.String(), curator.WayRefused.String()

	ways    = []string{served, forwarded, refused, hop}
	reasons = names(curator.Refusals())
	// answers are gRPC's codes. A service may use others, which gRPC treats as Unknown.
	answers = names(grpcCodes())
)

// The buckets of calls begin with the duration of a call on one machine, and end with long streams.
var callBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

var (
	callsDef    = definition{name: "eldest_service_calls_total", kind: counter, labels: []label{{"way", ways}, {"code", answers}}, help: "Calls to the elected service that this node has answered, by the way they went and gRPC's code. A hop is a call that another node has forwarded here, and counts there as forwarded; the others are those of callers."}
	tookDef     = definition{name: "eldest_service_call_seconds", kind: histogram, labels: by("way", ways...), help: "Time from a call's arrival at this node to its answer, the wait included; of a stream, how long it lasted.", buckets: callBuckets}
	callWaitDef = definition{name: "eldest_service_wait_seconds", kind: histogram, help: "Time that a caller's call waited for a leader, and for a connection to it; hops are not counted.", buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}
	refusalsDef = definition{name: "eldest_service_refusals_total", kind: counter, labels: by("reason", reasons...), help: "Callers' calls that a node has answered in the service's place, or whose caller gave up waiting, by reason; hops are not counted."}
	waitingDef  = definition{name: "eldest_service_waiting_calls", kind: gauge, help: "Calls that wait at this node for a leader, or for a connection to it. Computed at scrape."}
	heldDef     = definition{name: "eldest_service_waiting_bytes", kind: gauge, help: "Bytes of messages that this node keeps for the calls that wait. Computed at scrape."}
	flightDef   = definition{name: "eldest_service_calls_in_flight", kind: gauge, labels: by("way", served, forwarded), help: "Calls that this node serves as the leader, hops included, or is forwarding. Computed at scrape."}
)

// serviceDefinitions are the metrics of a node of a service, in the order of the documentation.
var serviceDefinitions = []*definition{&callsDef, &tookDef, &callWaitDef, &refusalsDef, &waitingDef, &heldDef, &flightDef}

func grpcCodes() []codes.Code {
	all := make([]codes.Code, 0, codes.Unauthenticated+1)
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		all = append(all, c)
	}
	return all
}

func names[S interface{ String() string }](of []S) []string {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = s.String()
	}
	return names
}
