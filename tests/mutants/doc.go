// Command mutants checks whether the tests would notice a fault: it removes one correction from the
// code, runs the test for it, and requires that the test fails.
//
//	go run ./tests/mutants                  # all of them, one after another
//	go run ./tests/mutants -run 0[1-5]      # those whose names match
//	go run ./tests/mutants -list            # lists them
//	go run ./tests/mutants -check           # do all patches still apply? (seconds)
//
// # Mutants
//
// Each mutant is a patch in this directory, NN-what.patch, where NN is the row of the table of
// regressions in docs/reference/regressions.md. A mutant that belongs to a guarantee or an
// invariant and to no row is named for it: G3-what.patch, I9-what.patch. The diff follows a header,
// which git apply ignores:
//
//	Row: 1
//	Guards: G1
//	Takes out: the read of the older candidates after the predecessor's key is deleted
//	Test: tests/regressions TestRegression01_WaiterInTheMiddleLeaves
//	Fails with: ^not in time: its new predecessor$|it was elected beside the leader
//
// Test is the directory of a package and the test that must fail, with a pattern for its subtests
// after a slash, if necessary. Fails with is a regular expression that one of the test's failures
// must match; a failure is one line, "what is wrong / the message" for an assertion, and the whole
// report for a panic or a race. It should be as narrow as possible while it is stable, and one that
// would match failures without a connection to the mutant is refused. Count: 5 runs the test up to
// five times, for faults that occur by chance; Race: yes builds it with the race detector.
//
// # Verdicts
//
// "killed" is the required one: the test passes on the code as it is, and fails with the patch,
// with the failure in the header. Everything else makes the command fail: a mutant that SURVIVED,
// one whose test failed otherwise, a patch that does not apply or a result that does not build, a
// test that took longer than -timeout, one that does not exist, was skipped, or fails without the
// patch. A failure to build proves nothing about a test, and neither does a hang, a port that is in
// use, or a lack of memory.
//
// # How
//
// The tree as git has it, including changes that are not committed, is copied to a temporary
// directory; the original is never patched. Each patch is applied there by itself, and reversed
// afterwards. A test without its patch is run once for all mutants that it kills.
//
// To make a mutant: edit the code, see the test fail, and then
//
//	{ printf 'Row: 1\nGuards: G1\nTakes out: ...\nTest: ...\nFails with: ...\n\n'; git diff; } > tests/mutants/01-what.patch
//	git restore <the files>
package main
