// Package curatorpb is what a node of a leader-elected service says to its callers,
// generated from curator.proto: the Curator service, which tells who leads, and
// LostLeadership, the detail of an error that says a tenure has ended.
//
// Not guaranteed: that what a message says is still true when it is read. It is for
// routing and for people; whoever writes as a leader writes through the tenure's guard.
//
// A client that gets an Unavailable can look whether anything may have happened:
//
//	for _, detail := range status.Convert(err).Details() {
//		if lost, ok := detail.(*curatorpb.LostLeadership); ok && lost.GetNothingApplied() {
//			// the request can be sent again, whatever it was
//		}
//	}
//
// The Go code is committed. Whoever changes curator.proto runs go generate, which
// needs nothing but Go, and commits what comes out.
package curatorpb

//go:generate ../../tests/generate/run curator/curatorpb
