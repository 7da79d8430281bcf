// Package dropin shows that compat/concurrency can stand in for etcd's own concurrency
// package, in three ways, all against real etcd.
//
//   - A table of behaviours (behaviour_test.go and the files of rows), each run with both
//     packages. A row that says what etcd's package does wrong must be seen to fail with it,
//     in those words: a row that it passes has done its duty and must go, and one that
//     cannot fail proves nothing.
//   - Programs (programs/), small ones of the kinds that use the package. Each is written
//     for etcd's package and is built twice, the second time with one import changed and
//     nothing else; both builds must say the same.
//   - Mixed fleets: both packages in one election, and on one mutex.
//
// The table in docs/reference/drop-in.md is that of the rows; a test compares them.
package dropin
