package main

import (
	"fmt"
	"regexp"
	"strings"
)

// verdict is the result of a mutant, or of a test without one.
type verdict string

const (
	killed    verdict = "killed"
	survived  verdict = "SURVIVED"
	otherwise verdict = "failed otherwise"
	stale     verdict = "does not apply"
	unbuilt   verdict = "does not build"
	timedOut  verdict = "timed out"
	absent    verdict = "no such test, or skipped"
	unhealthy verdict = "the test fails without it"
	broken    verdict = "error"
	// failed is the verdict of a failed test before its failures were compared with a mutant.
	failed verdict = "failed"
)

// judge reads the output of a test binary (with -test.v) and its end. ok means that it ended with
// exit code 0; late that it was killed because of its limit.
func judge(p proof, output string, ok, late bool) (v verdict, why []string) {
	name := regexp.QuoteMeta(p.top())
	ran := regexp.MustCompile(`(?m)^=== RUN   ` + name + `$`).MatchString(output)
	itself := regexp.MustCompile(`(?m)^\s*--- FAIL: ` + name + `\b`).MatchString(output)
	skipped := regexp.MustCompile(`(?m)^\s*--- SKIP: ` + name + `\b`).MatchString(output)
	switch {
	case late, strings.Contains(output, "panic: test timed out"):
		return timedOut, nil
	case !ran, skipped:
		return absent, nil
	case ok:
		return survived, nil
	case itself, crashes.MatchString(output):
		return failed, failures(output)
	default:
		return broken, []string{"it ended badly, and no test failed: " + lastLine(output)}
	}
}

// of is the verdict of a mutant whose test has ended with v. A test may fail for reasons without a
// connection to the mutant (a port that is in use, no memory left, a machine that is too slow):
// only a failure that the mutant's header expects proves that the test detects the mutant. One of
// several is enough: subtests that wait at the same time fail in any order.
func (m *mutant) of(v verdict, why []string) (verdict, string) {
	if v != failed {
		return v, shorten(strings.Join(why, " | "))
	}
	for _, f := range why {
		if m.fails.MatchString(f) {
			return killed, ends(f)
		}
	}
	return otherwise, fmt.Sprintf("not with %q, but with: %s", m.fails, cut(strings.Join(why, " | "), 1000))
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return shorten(lines[len(lines)-1])
}

func oneLine(s string) string { return shorten(strings.Join(strings.Fields(s), " ")) }

func shorten(s string) string { return cut(s, 240) }

// ends keeps the message, which is at the end.
func ends(s string) string {
	const head, tail = 150, 90
	if len(s) <= head+tail {
		return s
	}
	return strings.ToValidUTF8(s[:head], "") + "... " + strings.ToValidUTF8(s[len(s)-tail:], "")
}

func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
