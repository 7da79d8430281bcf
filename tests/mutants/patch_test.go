package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const good = `Row: 7
Guards: G1, G2
Takes out: the one thing that matters
Test: tests/regressions TestRegression07_It/one_way
Fails with: ^it does not: \d+$|neither
Count: 3
Race: yes

diff --git a/a/b.go b/a/b.go
--- a/a/b.go
+++ b/a/b.go
@@ -1 +1 @@
-a
+Row: this is no header
diff --git a/old.go b/new.go
`

func TestParse(t *testing.T) {
	m, err := parse([]byte(good))
	require.NoError(t, err)
	require.Equal(t, 7, m.Row)
	require.Equal(t, "G1, G2", m.Guards)
	require.Equal(t, "the one thing that matters", m.TakesOut)
	require.Equal(t, proof{Package: "tests/regressions", Test: "TestRegression07_It/one_way", Count: 3, Race: true}, m.proof)
	require.Equal(t, `^it does not: \d+$|neither`, m.fails.String())
	require.Equal(t, "TestRegression07_It", m.top())
	require.Equal(t, "^TestRegression07_It$/one_way", m.pattern())
	require.Equal(t, "^TestA$", proof{Test: "TestA"}.pattern())
}

// An invalid header is refused: its mutant would be run in a way that was not intended. Each of
// these headers has only one fault.
func TestParseRefuses(t *testing.T) {
	const whole = "Guards: G1\nTakes out: a\nTest: . TestA\nFails with: two at once\n\ndiff --git a/a.go b/a.go\n"
	_, err := parse([]byte(whole))
	require.NoError(t, err)
	for what, change := range map[string][3]string{
		"nothing":             {whole, "", "no diff --git"},
		"no diff":             {"diff --git", "", "header"},
		"no test":             {"Test: . TestA\n", "", "must have the lines"},
		"no guarantee":        {"Guards: G1\n", "", "must have the lines"},
		"no expectation":      {"Fails with: two at once\n", "", "must have the lines"},
		"a misspelt line":     {"Guards:", "Guard:", "unknown"},
		"prose":               {"Guards:", "This takes out a\nGuards:", "header"},
		"no package":          {". TestA", "TestA", "<directory>"},
		"a pattern":           {"TestA", "Test.*", "<directory>"},
		"a row like a day":    {"Guards:", "Row: one\nGuards:", "invalid syntax"},
		"never":               {"Guards:", "Count: 0\nGuards:", "at least 1"},
		"no regexp":           {"two at once", "(two at once", "missing closing )"},
		"anything":            {"two at once", ".*", `matches ""`},
		"anything or nothing": {"two at once", "(two at once)?", `matches ""`},
		"one word":            {"two at once", "Not equal", `matches "Not equal:"`},
		"any assertion":       {"two at once", "^Should be (true|false)", `matches "Should be true"`},
		"any waiting":         {"two at once", "deadline exceeded", `matches "Received unexpected error: context deadline`},
		"any race":            {"two at once", "DATA RACE", `matches "WARNING: DATA RACE"`},
		"any leak":            {"two at once", "goroutines are left", `matches "etcdtest:`},
	} {
		text := strings.Replace(whole, change[0], change[1], 1)
		require.NotEqual(t, whole, text, what)
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, change[2], what)
	}
}

func TestJudge(t *testing.T) {
	p := proof{Test: "TestA/sub"}
	const ran = "=== RUN   TestA\n"
	for what, tc := range map[string]struct {
		output   string
		ok, late bool
		want     verdict
	}{
		"passes":                {output: ran + "--- PASS: TestA (0.00s)\nPASS\n", ok: true, want: survived},
		"fails":                 {output: ran + "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\nFAIL\n", want: failed},
		"panics elsewhere":      {output: ran + "panic: close of closed channel\n\ngoroutine 7\n", want: failed},
		"races":                 {output: ran + "WARNING: DATA RACE\n", want: failed},
		"leaves goroutines":     {output: ran + "--- PASS: TestA (0.00s)\nPASS\netcdtest: goroutines are left: 1\n", want: failed},
		"is not there":          {output: "testing: warning: no tests to run\nPASS\n", ok: true, want: absent},
		"another one is":        {output: "=== RUN   TestAB\n--- PASS: TestAB (0.00s)\nPASS\n", ok: true, want: absent},
		"is skipped":            {output: ran + "--- SKIP: TestA (0.00s)\nPASS\n", ok: true, want: absent},
		"a part is skipped":     {output: ran + "--- PASS: TestA (0.00s)\n    --- SKIP: TestA/sub (0.00s)\nPASS\n", ok: true, want: absent},
		"hangs":                 {output: ran + "panic: test timed out after 1m0s\n", want: timedOut},
		"hangs beyond its own":  {output: ran, late: true, want: timedOut},
		"another one fails":     {output: ran + "--- FAIL: TestAB (0.00s)\nFAIL\n", want: broken},
		"ends without a reason": {output: ran + "signal: killed\n", want: broken},
	} {
		got, _ := judge(p, tc.output, tc.ok, tc.late)
		require.Equal(t, tc.want, got, what)
	}
}
