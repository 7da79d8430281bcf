// Package stage sets up the test environment of the examples and tests below examples/customise: an
// etcd of their own, and candidates with sessions.
//
// Not guaranteed: that a program should do it like this. An example ends at the first failure
// (Must), and its etcd keeps its data in memory; a program gets its client from clientv3.New and
// checks each error.
//
//	ctx, client, stop := stage.Start()
//	defer stop()
//	anna, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Value: []byte("anna")})
//	defer leave()
//
// Tests that need a network that can be partitioned, or a record of each request, use the same
// clusters through internal/etcdtest, as all tests of this repository do.
//
// # Waiting
//
// Until waits for a condition, for as long as its context lasts. An example whose output must be
// the same in each run, on any machine, waits for conditions and never for a time.
package stage
