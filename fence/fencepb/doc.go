// Package fencepb is what a fence says to callers whose token is too old, generated from
// fence.proto: Refused, the detail of a FAILED_PRECONDITION.
//
// Not guaranteed: that the newest token is still the newest when this is read. It only
// grows, so a tenure that was refused once is over for good.
//
// Go programs need not look at it: the client side of package fence makes an error of it
// that wraps eldest.ErrNotLeading. Others find it in the details of the status:
//
//	for _, detail := range status.Convert(err).Details() {
//		if refused, ok := detail.(*fencepb.Refused); ok {
//			// somebody else leads refused.GetElection()
//		}
//	}
//
// The Go code is committed. Whoever changes fence.proto runs go generate, which needs
// nothing but Go, and commits what comes out.
package fencepb

//go:generate ../../tests/generate/run fence/fencepb
