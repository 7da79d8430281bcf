// Package wire connects the programs of the book to etcd, and tells them when a watch is
// in place and when a look was answered. A program ends at its first
// error, so that its text is about etcd (Must, Check).
//
//	anna := wire.Connect("anna")         // the etcd at ELDEST_ENDPOINTS
//	defer anna.Hangup()
//	...                                  // something that opens a watch, in the background
//	wire.Check(anna.Watching(ctx, 1))    // until etcd has said that it is in place
//
// Not guaranteed: anything that a program in production needs. There a watch is in place
// when it is, and nobody has to know: the protocol is right in any order. The programs of
// the book wait, so that each run of them sends the same requests in the same order, and
// what was captured of one run is what the reader sees in his own.
//
// A client has a name. It travels as the user agent, by which whoever captures the
// requests tells the candidates of one process apart.
package wire
