// Package regressions holds one named test for each fault that users of other election code have
// met: of etcd's concurrency package and its issues, of libraries built on it or used with it, of
// systems that had outages because of it. The tests are numbered; a test's comment describes the
// scenario, what the faulty code did ("in other implementations"), and which change of Eldest makes
// the test fail.
//
// Not covered here: the seeded scenarios in virtual time (cmd/eldest/lab/sim), and rows whose claim
// another package tests, such as a guarantee of the root package. rows.txt names the tests of each
// row.
//
// All tests run against real etcd processes. The table of tests/dropin shows that etcd's own package
// has the fault, where it always has it.
//
// Each test is itself tested: tests/mutants removes the code that the test protects, and the test
// must fail then. For tests that are to fail, ELDEST_PATIENCE sets how long they wait for a
// condition (etcdtest.Patience).
//
// Rows about the election loop run whole nodes (node_test.go), which keep every status that they
// have ever published. The flag -outages is the list of durations for which etcd is unavailable in
// row 26: 8s in daily runs, 10s,30s,2m in reference runs. Rows 26 and 30 run a share of their cases;
// the flag -all runs all of them.
//
// Where a process must be stopped or killed, the test binary starts itself again as a participant
// (child_test.go) that reports over its standard output.
package regressions
