// Package dropin shows that compat/concurrency can replace etcd's own concurrency package, in three
// ways, all against real etcd.
//
//   - A table of behaviours (behaviour_test.go and the files of rows), each run with both
//     packages. A row that describes a fault of etcd's package must fail with that package, with
//     the described text: a row that etcd's package passes must be removed, and one that cannot
//     fail proves nothing.
//   - Programs (programs/), small ones of the kinds that use the package. They are written
//     for etcd's package and are built twice, the second time with only the import of each
//     changed; both builds must print the same.
//   - Mixed fleets: both packages in one election, and on one mutex.
//
// docs/reference/drop-in.md contains the same table; a test compares them.
package dropin
