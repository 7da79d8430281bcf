// Package curatorpb has the messages that a node of a leader-elected service sends to its callers,
// generated from curator.proto: the Curator service, which reports which node leads, and
// LostLeadership, the detail of an error that means that a tenure has ended.
//
// A message may be out of date when it is read. It is for routing and for people; a leader must
// write through the tenure's guard.
//
// A client that gets an Unavailable can check whether anything may have been changed:
//
//	for _, detail := range status.Convert(err).Details() {
//		if lost, ok := detail.(*curatorpb.LostLeadership); ok && lost.GetNothingApplied() {
//			// the request can be sent again, whatever it was
//		}
//	}
//
// The Go code is committed. After a change of curator.proto run go generate, which needs nothing
// but Go, and commit the result.
package curatorpb

//go:generate ../../tests/generate/run
