// Package regressions holds one named test for each fault that users of election code
// elsewhere have met: of etcd's concurrency package and its issues, of libraries built
// on it or beside it, of systems that had outages for it. The tests are numbered; a
// test's comment tells the scenario, what the faulty code did, and which change of
// Eldest makes the test fail.
//
// Not covered here: the seeded scenarios in virtual time (cmd/eldest/lab/sim), and the
// acceptance of the guarantees (the root of the repository).
//
// All tests run against real etcd processes. Where etcd's own package has the fault for
// certain, not only now and then, a subtest shows that on the same stage: it proves
// that the stage can tell the difference. When such a subtest fails because the fault
// was mended, it has done its duty and can go.
//
// Each test proves itself: tests/mutants takes out of the code what the test is there
// for, and the test must fail. Whoever runs tests that are to fail says by
// ELDEST_PATIENCE how long they wait for what must happen (etcdtest.Patience).
//
// Rows about the election loop run whole nodes (node_test.go), which keep every status
// that they have ever published. How long etcd is away in row 26 is said by -outages, or
// ELDEST_OUTAGES, as a list: every day 8s, for the record 10s,30s,2m.
//
// Where a process must be stopped or killed, the test binary starts itself again as a
// participant (child_test.go) that reports over its standard output.
package regressions
