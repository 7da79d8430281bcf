// Package book has the programs of the book about the protocol, one for each chapter of docs/book;
// it has no code of its own.
//
//	go run ./examples/book/leases              chapter  1
//	go run ./examples/book/key-values          chapter  2
//	go run ./examples/book/keys-on-a-lease     chapter  3
//	go run ./examples/book/test-and-set        chapter  4
//	go run ./examples/book/querying            chapter  5
//	go run ./examples/book/watching            chapter  6
//	go run ./examples/book/basic-algorithm     chapter  7
//	go run ./examples/book/thundering-herds    chapter  8
//	go run ./examples/book/query-leader        chapter  9
//	go run ./examples/book/node-values         chapter 10
//
// Not guaranteed: that a program should be written like this. They do one step after another, so
// that each can be seen; package examples has programs to start from.
//
// Each program uses the etcd at ELDEST_ENDPOINTS (or 127.0.0.1:2379; "eldest etcd --client-port
// 2379" starts one), writes and deletes keys below "book/" and the key "book-state", prints what
// happens, and ends within seconds. Its output.txt has the output on an etcd without data,
// revisions included; on another etcd the revisions differ. A test runs all programs against a real
// etcd and compares their output.
package book
