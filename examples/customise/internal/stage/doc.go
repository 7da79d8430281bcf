// Package stage sets up what the examples and tests below examples/customise stand on: an
// etcd of their own, and candidates with sessions.
//
// Not guaranteed: that a program should do it like this. An example ends when something
// fails (Must), and its etcd keeps its data in memory; a program has its client from
// clientv3.New and looks at each error.
//
//	ctx, client, stop := stage.Start()
//	defer stop()
//	anna, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Value: []byte("anna")})
//	defer leave()
//
// Tests that need a network that can be cut, or a record of each request, use the same
// clusters by internal/etcdtest, as all tests of this repository do.
//
// # Waiting
//
// Until waits for a condition, for as long as its context lasts. An example that is to
// show the same at each run, on any machine, waits for what it shows and never for a
// time.
package stage
