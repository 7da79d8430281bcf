// Package regressions holds one named test for each fault that users of election code
// elsewhere have met: of etcd's concurrency package and its issues, of libraries built
// on it or beside it, of systems that had outages for it. The tests are numbered; a
// test's comment tells the scenario and what the faulty code did.
//
// Not covered here: the seeded scenarios in virtual time (cmd/eldest/lab/sim), in whose
// package expiry rows 11, 12 and 34 are kept, and the acceptance of the guarantees (the
// root of the repository). That etcd's own package has a fault, where it has it for
// certain, is shown by tests/dropin.
//
// All tests run against real etcd processes. Each test proves itself: tests/mutants takes
// out of the code what the test is there for, and the test must fail. ELDEST_PATIENCE says
// how long tests that are to fail wait for what must happen (etcdtest.Patience).
//
// How long etcd is away in row 26 is said by -outages, or ELDEST_OUTAGES, as a list: every
// day 8s, for the record 10s,30s,2m.
package regressions
