package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// assertion is the output of testify, as package testing indents it.
func assertion(test, wrong, message string) string {
	column := func(s string) string { return strings.ReplaceAll(s, "\n", "\n        \t            \t") }
	text := "    a_test.go:7: \n        \tError Trace:\t/tmp/a_test.go:7\n        \t            \t\t\t\t/tmp/b_test.go:9\n" +
		"        \tError:      \t" + column(wrong) + "\n        \tTest:       \t" + test + "\n"
	if message != "" {
		text += "        \tMessages:   \t" + column(message) + "\n"
	}
	return text
}

func TestFailures(t *testing.T) {
	for what, tc := range map[string]struct {
		output string
		want   []string
	}{
		"none":            {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n", nil},
		"an assertion":    {assertion("TestA", "Should be false", "it holds"), []string{"Should be false / it holds"}},
		"without a word":  {assertion("TestA", "Should be false", ""), []string{"Should be false"}},
		"of several":      {assertion("TestA", "Not equal: \nexpected: 1\nactual  : 2", "two\nlines"), []string{"Not equal: expected: 1 actual : 2 / two lines"}},
		"one by one":      {assertion("TestA/a", "a", "x") + "=== NAME  TestA/b\n" + assertion("TestA/b", "b", ""), []string{"a / x", "b"}},
		"back to back":    {assertion("TestA", "a", "") + assertion("TestA", "b", "y"), []string{"a", "b / y"}},
		"own words":       {"    a_test.go:7: two at once\n--- FAIL: TestA (0.00s)\n", []string{"two at once"}},
		"words come last": {"    a_test.go:6: a log\n" + assertion("TestA", "a", ""), []string{"a", "a log"}},
		"a panic":         {"panic: oops\n\ngoroutine 7 [running]:\nx.(*T).f(0x1)\nFAIL\n", []string{"panic: oops goroutine 7 [running]: x.(*T).f(0x1)"}},
		"a race": {
			"==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 7:\n  x.(*T).f()\n==================\n    a_test.go:7: log\n",
			[]string{"WARNING: DATA RACE Read at 0x1 by goroutine 7: x.(*T).f()", "log"},
		},
		"a leak": {"PASS\ngoleak: Errors on successful test run: found unexpected goroutines:\n[Goroutine 9]\n", []string{"goleak: Errors on successful test run: found unexpected goroutines: [Goroutine 9]"}},
	} {
		require.Equal(t, tc.want, failures(tc.output), what)
	}
	require.LessOrEqual(t, len(shorten(string(make([]byte, 1000)))), 250)
	require.Equal(t, "whole", ends("whole"))
	long := ends(strings.Repeat("a", 1000) + " / the message")
	require.Regexp(t, `^a+\.\.\. a+ / the message$`, long)
	require.LessOrEqual(t, len(long), 250)
}

// A test that fails has killed a mutant only if it failed because of the mutant. The first three
// were once counted as killed.
func TestKilledForItsOwnReason(t *testing.T) {
	const expected = `^Should be false / it holds the leadership of somebody else$`
	m := &mutant{fails: regexp.MustCompile(expected), proof: proof{Test: "TestA"}}
	require.NoError(t, specific(m.fails))
	const ran, fail = "=== RUN   TestA\n", "--- FAIL: TestA (0.00s)\nFAIL\n"
	own := assertion("TestA", "Should be false", "it holds the leadership of somebody else")
	port := assertion("TestA", "Received unexpected error:\nlisten tcp 127.0.0.1:4711: bind: address already in use", "")
	for what, tc := range map[string]struct {
		output string
		want   verdict
		says   string
	}{
		"a port in use":        {ran + port + fail, otherwise, "address already in use"},
		"out of memory":        {ran + "fatal error: runtime: out of memory\n\nruntime stack:\n", otherwise, "out of memory"},
		"a leak after PASS":    {ran + "--- PASS: TestA (0.00s)\nPASS\ngoleak: Errors on successful test run: found unexpected goroutines:\n", otherwise, "goleak"},
		"nothing was said":     {ran + fail, otherwise, expected[1:16]},
		"half of it":           {ran + assertion("TestA", "Should be false", "") + fail, otherwise, "Should be false"},
		"its own reason":       {ran + own + fail, killed, "somebody else"},
		"its own among others": {ran + port + own + fail, killed, "somebody else"},
	} {
		v, why := judge(m.proof, tc.output, false, false)
		require.Equal(t, failed, v, what)
		v, said := m.of(v, why)
		require.Equal(t, tc.want, v, what)
		require.Contains(t, said, tc.says, what)
	}
	// Other verdicts do not change, whatever the output is.
	for _, v := range []verdict{survived, timedOut, absent, broken, unbuilt} {
		got, _ := m.of(v, []string{"Should be false / it holds the leadership of somebody else"})
		require.Equal(t, v, got)
	}
}
