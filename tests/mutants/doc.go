// Command mutants asks whether the tests would notice: it takes one mending out of the
// code, runs the test that is there for it, and wants to see it fail.
//
//	go run ./tests/mutants                  # all of them, one after another
//	go run ./tests/mutants -run 0[1-5]      # those whose names match
//	go run ./tests/mutants -list            # what there is
//	go run ./tests/mutants -check           # do all patches still apply? (seconds)
//
// # Mutants
//
// Each mutant is a patch in this directory, NN-what.patch, where NN is the row of the
// table of regressions in docs/reference/regressions.md. Those that belong to a guarantee or an
// invariant and to no row are called by that: G3-what.patch, I9-what.patch. Before the
// diff stands a header, of which git apply takes no notice:
//
//	Row: 1
//	Guards: G1
//	Takes out: the question who is older, after the predecessor's end
//	Test: tests/regressions TestRegression01_WaiterInTheMiddleLeaves
//	Fails with: ^not in time: its new predecessor$|it was elected beside the leader
//
// Test is the directory of a package and the test that must turn red, with a pattern
// for its subtests behind a slash, if need be. Fails with is a regular expression that
// one of the test's failures must match; a failure is one line, "what is wrong / the
// message" for an assertion, and the whole report for a panic or a race. It is as narrow
// as is stable, and one that any test's bad day would meet is refused. Count: 5 has the test run up to five
// times, for faults that are met by chance; Race: yes builds it with the race detector.
//
// # Verdicts
//
// "killed" is the one that is wanted: the test passes on the code as it is, and fails
// with the patch, with what the header says. Everything else makes the command fail: a
// mutant that SURVIVED, one whose test failed otherwise, a patch that does not apply or
// a result that does not build, a test that took longer than -timeout, one that is not
// there, was skipped, or fails without the patch. A failure to build proves nothing
// about a test, and neither does a hang, a port that is in use, or memory that is gone.
//
// # How
//
// The tree as git knows it, changes that are not committed included, is copied to a
// temporary directory; nothing is ever patched in place. Each patch is applied there by
// itself, and taken back afterwards. A test without its patch is run once for all mutants
// that it kills.
//
// To make a mutant: edit the code, see the test fail, and then
//
//	{ printf 'Row: 1\nGuards: G1\nTakes out: ...\nTest: ...\nFails with: ...\n\n'; git diff; } > tests/mutants/01-what.patch
//	git restore <the files>
package main
