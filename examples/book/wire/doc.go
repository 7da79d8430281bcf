// Package wire connects the programs of the book to etcd, and waits until a watch is in place. A
// program ends at its first error, so that its text is about etcd (Must, Check).
//
//	anna := wire.Connect("anna")         // the etcd at ELDEST_ENDPOINTS
//	defer anna.Hangup()
//	...                                  // something that opens a watch, in the background
//	wire.Check(anna.Watching(ctx, 1))    // until etcd has confirmed that it is in place
//
// Not guaranteed: anything that a program in production needs. In production no program needs to
// wait for a watch to be in place: the protocol is correct in any order. The programs of the book
// wait, so that each run sends the same requests in the same order, and the captured run in the
// book is the same as the reader's own.
//
// A client has a name. It is sent as the user agent, which distinguishes the candidates of one
// process in captured requests.
package wire
