package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each feature of the origins has a test that exists, or a reason why Eldest does not have it.
func TestOrigin(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	page, err := r.text("docs/origin.md")
	require.NoError(t, err)
	origins := strings.Split(page, "\n## ")[1:]
	require.Len(t, origins, 2)
	for _, origin := range origins {
		require.Greater(t, len(rows(origin)), 35)
		for _, fault := range r.unshown(origin) {
			t.Error("docs/origin.md: " + fault)
		}
	}
}

// A feature without a test or a reason is found.
func TestOriginIsHeldAgainstTests(t *testing.T) {
	t.Parallel()
	r := &Repository{tests: map[string][]string{".": {"TestA"}, "a": {"TestB"}}}
	const head = "| feature | in Eldest | tests | what differs |\n|---|---|---|---|\n"
	for row, want := range map[string]string{
		"| f | p | `TestA` (root) | |":                "",
		"| f | p | `TestA`, `TestB` (a) | reason |":   "",
		"| f | | deliberately not | reason |":         "",
		"| f | p | | reason |":                        "f: there is no test",
		"| f | p | later | reason |":                  "f: there is no test",
		"| f | p | `TestC` (a) | |":                   "f: TestC is not in",
		"| f | p | `TestB` | |":                       "f: TestB is not in",
		"| f | | deliberately not | |":                "f: there is no reason",
		"| f | p | `TestA` | TODO-lead |":             "f: it is not finished",
		"| f | p | `TestA` |":                         "f: 3 cells",
		"| f | p | `TestA`, deliberately not | why |": "f: it has a test and is deliberately not there",
	} {
		got := strings.Join(r.unshown(head+row), "; ")
		require.Equal(t, want == "", got == "", "%s: %s", row, got)
		require.Contains(t, got, want, row)
	}
}

// unshown returns what is wrong with the rows of a table of features: cells are the feature, what
// Eldest has, the tests, and what differs.
func (r *Repository) unshown(table string) (faults []string) {
	for i, row := range rows(table) {
		if i < 2 { // the head
			continue
		}
		fault := func(format string, args ...any) {
			faults = append(faults, row[0]+": "+fmt.Sprintf(format, args...))
		}
		if len(row) != 4 {
			fault("%d cells", len(row))
			continue
		}
		if strings.Contains(strings.Join(row, " "), "TODO") {
			fault("it is not finished")
		}
		switch tests, reason := row[2], row[3]; {
		case tests == "deliberately not" && reason == "":
			fault("there is no reason")
		case tests == "deliberately not":
		case strings.Contains(tests, "deliberately not"):
			fault("it has a test and is deliberately not there")
		default:
			for _, test := range r.unproven(tests, ".") {
				fault("%s", test)
			}
		}
	}
	return faults
}
