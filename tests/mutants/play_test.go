package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	code = "package tiny\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n\n// Unused is not tested.\nfunc Unused() int { return 1 }\n"

	tests = `package tiny

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Error("wrong sum")
	}
}

func TestWrong(t *testing.T) { t.Error("always") }

func TestSkipped(t *testing.T) { t.Skip("always") }
`
)

// change makes a patch of the tiny repository that replaces one line.
func change(line, into, test string) string {
	var hunk strings.Builder
	shown := strings.Replace(code, map[bool]string{true: add, false: unused}[strings.Contains(line, "Add")], line, 1)
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	for _, l := range lines {
		if l == line {
			fmt.Fprintf(&hunk, "-%s\n+%s\n", l, into)
		} else {
			fmt.Fprintf(&hunk, " %s\n", l)
		}
	}
	return fmt.Sprintf("Guards: G1\nTakes out: it\nTest: tiny %s\nFails with: ^wrong sum$\n\ndiff --git a/tiny/tiny.go b/tiny/tiny.go\n--- a/tiny/tiny.go\n+++ b/tiny/tiny.go\n@@ -1,%d +1,%d @@\n%s",
		test, len(lines), len(lines), hunk.String())
}

// repository makes a repository with a test and these mutants.
func repository(t *testing.T, mutants map[string]string) (root string, all []*mutant) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.work": "go 1.26.0\n\nuse .\n", "go.mod": "module example.org/tiny\n\ngo 1.26.0\n", "tiny/tiny.go": code, "tiny/tiny_test.go": tests,
		".gitignore": "left\n", "left": "ignored",
	} {
		require.NoError(t, write(filepath.Join(root, name), []byte(text), 0o644))
	}
	for name, text := range mutants {
		require.NoError(t, write(filepath.Join(root, "tests", "mutants", name+".patch"), []byte(text), 0o644))
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "all"},
	} {
		_, err := git(t.Context(), root, nil, args...)
		require.NoError(t, err)
	}
	all, err := load(filepath.Join(root, "tests", "mutants"))
	require.NoError(t, err)
	return root, all
}

const (
	add    = "func Add(a, b int) int { return a + b }"
	unused = "func Unused() int { return 1 }"
)

// The test covers every verdict, on a repository that has a mutant for each. The tree is unchanged
// after each of them; otherwise the healthy tests would fail.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	want := map[string]verdict{
		"a-killed":    killed,
		"b-survives":  survived,
		"c-stale":     stale,
		"d-unbuilt":   unbuilt,
		"e-hangs":     timedOut,
		"f-skipped":   absent,
		"g-not-there": absent,
		"h-unhealthy": unhealthy,
		"i-panics":    otherwise,
	}
	root, all := repository(t, map[string]string{
		"a-killed":    change(add, "func Add(a, b int) int { return a - b }", "TestAdd"),
		"b-survives":  change(unused, "func Unused() int { return 2 }", "TestAdd"),
		"c-stale":     change("func Add(a, b int) int { return b + a }", add, "TestAdd"),
		"d-unbuilt":   change(add, "func Add(a, b int) int { return }", "TestAdd"),
		"e-hangs":     change(add, "func Add(a, b int) int { select {} }", "TestAdd"),
		"f-skipped":   change(add, "func Add(a, b int) int { return 0 }", "TestSkipped"),
		"g-not-there": change(add, "func Add(a, b int) int { return 0 }", "TestNone"),
		"h-unhealthy": change(add, "func Add(a, b int) int { return 0 }", "TestWrong"),
		"i-panics":    change(add, "func Add(a, b int) int { panic(a) }", "TestAdd"),
	})
	told := 0
	results, err := playAll(t.Context(), setting{root: root, jobs: 4, timeout: 5 * time.Second}, all, func(result) { told++ })
	require.NoError(t, err)
	require.Equal(t, len(want), told)
	got := map[string]verdict{}
	for _, r := range results {
		got[r.Name] = r.verdict
		if r.Name == "a-killed" {
			require.Equal(t, "wrong sum", r.why)
		}
	}
	require.Equal(t, want, got)
	require.ErrorIs(t, sum(&strings.Builder{}, results), errAlive)
	text, err := os.ReadFile(filepath.Join(root, "tiny", "tiny.go"))
	require.NoError(t, err)
	require.Equal(t, code, string(text), "it was patched in place")
}

// Only if all mutants are killed, sum returns no error.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	root, all := repository(t, map[string]string{"a": change(add, "func Add(a, b int) int { return a - b }", "TestAdd")})
	for _, tests := range []string{"", "package tiny\n"} {
		want := killed
		if tests != "" { // uncommitted changes count
			require.NoError(t, write(filepath.Join(root, "tiny", "tiny_test.go"), []byte(tests), 0o644))
			want = absent
		}
		results, err := playAll(t.Context(), setting{root: root, jobs: 2, timeout: 10 * time.Second}, all, func(result) {})
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Equal(t, want, results[0].verdict)
		var out strings.Builder
		require.Equal(t, want == killed, sum(&out, results) == nil)
		require.Contains(t, out.String(), "1 mutant: 1 "+string(want))
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	root, all := repository(t, map[string]string{"a": change(add, "func Add(a, b int) int { select {} }", "TestAdd")})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := playAll(ctx, setting{root: root, jobs: 1, timeout: time.Minute}, all, func(result) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCheckFinds(t *testing.T) {
	t.Parallel()
	root, all := repository(t, map[string]string{
		"a-good":      change(add, "func Add(a, b int) int { return a - b }", "TestAdd"),
		"b-stale":     change("func Add(a, b int) int { return b + a }", add, "TestAdd"),
		"c-not-there": change(add, "func Add(a, b int) int { return 0 }", "TestNone"),
	})
	faults := check(t.Context(), root, all)
	require.Len(t, faults, 2)
	require.Contains(t, faults[0], "b-stale: does not apply")
	require.Contains(t, faults[1], "c-not-there: there is no TestNone in tiny")
}

// The mutants of this repository: each applies to the current code, and its test exists. The
// command checks that they are killed.
func TestMutantsOfThisRepository(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	root, err := rootOf(here)
	require.NoError(t, err)
	all, err := load(filepath.Join(root, "tests", "mutants"))
	require.NoError(t, err)
	require.Greater(t, len(all), 50)
	require.Empty(t, check(t.Context(), root, all))
}
