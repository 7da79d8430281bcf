package docs

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every guarantee, invariant and regression has a test, which is in the package given in the page.
func TestClaims(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	claims, err := r.text("docs/claims.md")
	require.NoError(t, err)
	var numbers []string
	for _, row := range rows(claims) {
		last := row[len(row)-1]
		if regexp.MustCompile(`^[GI]\d$`).MatchString(row[0]) {
			numbers = append(numbers, row[0])
		}
		if row[0] != "" && len(row) < 4 && strings.Contains(last, "`Test") {
			require.Empty(t, r.unproven(last, "."), "docs/claims.md: %s", row[0])
		}
	}
	want := found(t, r, "doc.go", `(?m)^//\t(G\d) `)
	require.NotEmpty(t, want)
	for i := range 9 {
		want = append(want, "I"+strconv.Itoa(i+1))
	}
	require.Equal(t, want, numbers)

	regressions, err := r.text("docs/reference/regressions.md")
	require.NoError(t, err)
	next := 1
	for _, row := range rows(regressions) {
		if number, err := strconv.Atoi(row[0]); err == nil {
			require.Equal(t, next, number, "a row of docs/reference/regressions.md")
			require.Empty(t, r.unproven(row[3], "tests/regressions"), "docs/reference/regressions.md, row %d", number)
			next++
		}
	}
	require.Greater(t, next, 66)
}

// A claim without a test is found, and so is one whose test is in another package.
func TestClaimsAreHeldAgainstTests(t *testing.T) {
	r := &Repository{tests: map[string][]string{".": {"TestA"}, "a": {"TestB", "FuzzC"}, "x/a": {"TestD"}}}
	for cell, want := range map[string]string{
		"`TestA`":                           "",
		"`A`, `B`, `FuzzC` (a)":             "",
		"`TestA` (root), `TestB`, `D` (a)":  "",
		"`A`; of the second, `B` (a)":       "",
		"`A` (22 November), a row of `x/a`": "",
		"":                                  "there is no test",
		"none":                              "there is no test",
		"`TestB`":                           "TestB",
		"`TestB` (a), `TestE` (a)":          "TestE",
		"`TestB` (b)":                       "TestB",
	} {
		got := r.unproven(cell, ".")
		require.Equal(t, want == "", len(got) == 0, "%s: %v", cell, got)
		require.Contains(t, strings.Join(got, " "), want, cell)
	}
}

// rows returns the cells of all tables in a page.
func rows(page string) (all [][]string) {
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			all = append(all, cells)
		}
	}
	return all
}

var spanOrPackage = regexp.MustCompile("`([^`]+)`|\\((\\w[\\w/]*)\\)")

// unproven finds the tests of a cell that are neither in the package in the next brackets nor in
// the usual one. "Test" may be left out of their names.
func (r *Repository) unproven(cell, usual string) (faults []string) {
	var waiting []string
	known := 0
	settle := func(folders ...string) {
		for _, name := range waiting {
			known++
			if !slices.ContainsFunc(folders, func(folder string) bool {
				return slices.Contains(r.tests[folder], name) || slices.Contains(r.tests[folder], "Test"+name)
			}) {
				faults = append(faults, name+" is not in "+strings.Join(folders, ", "))
			}
		}
		waiting = nil
	}
	for _, m := range spanOrPackage.FindAllStringSubmatch(cell, -1) {
		switch {
		case m[2] == "root":
			settle(usual, ".")
		case m[2] != "":
			folders := []string{usual}
			for folder := range r.tests {
				if folder == m[2] || strings.HasSuffix(folder, "/"+m[2]) {
					folders = append(folders, path.Clean(folder))
				}
			}
			settle(folders...)
		case strings.ContainsAny(m[1][:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
			waiting = append(waiting, m[1])
		}
	}
	settle(usual)
	if known == 0 {
		return []string{"there is no test"}
	}
	return faults
}
