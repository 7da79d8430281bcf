// Package fencepb has the message that a fence returns to callers whose token is too old, generated
// from fence.proto: Refused, the detail of a FAILED_PRECONDITION.
//
// Not guaranteed: that the newest token is still the newest when the message is read. It only
// grows, so a tenure that was refused once is over for good.
//
// Go programs do not need it: the client side of package fence makes an error of it that wraps
// eldest.ErrNotLeading. Other programs find it in the details of the status:
//
//	for _, detail := range status.Convert(err).Details() {
//		if refused, ok := detail.(*fencepb.Refused); ok {
//			// another candidate leads refused.GetElection()
//		}
//	}
//
// The Go code is committed. After a change of fence.proto, run go generate, which needs nothing but
// Go, and commit the result.
package fencepb

//go:generate ../../tests/generate/run
