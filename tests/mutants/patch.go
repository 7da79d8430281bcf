package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is a patch and its header.
type mutant struct {
	Name     string
	Row      int
	Guards   string
	TakesOut string
	// fails must match one of the test's failures; only then the mutant has caused the failure.
	fails *regexp.Regexp
	proof
	// The patch as it was when its header was read: it must not change during a run.
	text []byte
}

// proof is the test that must fail. Mutants with the same proof share its run on the unchanged
// code.
type proof struct {
	Package string
	Test    string
	Count   int
	Race    bool
}

// top is the name of the test function, without a pattern for subtests.
func (p proof) top() string {
	name, _, _ := strings.Cut(p.Test, "/")
	return name
}

// pattern is the -test.run for this test and no other.
func (p proof) pattern() string {
	name, sub, found := strings.Cut(p.Test, "/")
	if !found {
		return "^" + name + "$"
	}
	return "^" + name + "$/" + sub
}

var testName = regexp.MustCompile(`^Test\w+(/.+)?$`)

// load reads the mutants of a directory, in order of their names.
func load(dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var all []*mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(path), ".patch")
		if m.Row > 0 && !strings.HasPrefix(m.Name, fmt.Sprintf("%02d-", m.Row)) {
			return nil, fmt.Errorf("%s: it is of row %d", path, m.Row)
		}
		all = append(all, m)
	}
	return all, nil
}

// parse reads a patch. An invalid header is an error: a mutant with a misspelt line would be run in
// a way that was not intended.
func parse(text []byte) (*mutant, error) {
	m := &mutant{proof: proof{Count: 1}, text: text}
	diff := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if diff = strings.HasPrefix(line, "diff --git "); diff {
			break
		}
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ": ")
		if err := m.header(name, strings.TrimSpace(value)); err != nil || !found {
			return nil, fmt.Errorf("header %q: %w", line, err)
		}
	}
	switch {
	case !diff:
		return nil, fmt.Errorf("no diff --git in it")
	case m.TakesOut == "" || m.Guards == "" || m.Package == "" || m.fails == nil:
		return nil, fmt.Errorf("the header must have the lines Guards, Takes out, Test and Fails with")
	}
	return m, nil
}

func (m *mutant) header(name, value string) (err error) {
	switch name {
	case "Row":
		m.Row, err = strconv.Atoi(value)
	case "Guards":
		m.Guards = value
	case "Takes out":
		m.TakesOut = value
	case "Test":
		m.Package, m.Test, _ = strings.Cut(value, " ")
		if !testName.MatchString(m.Test) {
			err = fmt.Errorf("want <directory> <Test...>[/<subtests>]")
		}
	case "Fails with":
		if m.fails, err = regexp.Compile(value); err == nil {
			err = specific(m.fails)
		}
	case "Count":
		if m.Count, err = strconv.Atoi(value); err == nil && m.Count < 1 {
			err = fmt.Errorf("want at least 1")
		}
	case "Race":
		m.Race = value == "yes"
	default:
		err = fmt.Errorf("unknown")
	}
	return err
}

// anyones are failures that any test may have on an overloaded machine, and texts of any assertion.
var anyones = []string{
	"",
	"Not equal:",
	"Condition never satisfied",
	"Condition satisfied",
	"Should be true",
	"Should be false",
	"Should be empty",
	"Should be zero, but was 1",
	"An error is expected but got nil.",
	"Expected nil, but got: 1",
	"Target error should be in err chain:",
	"Received unexpected error:",
	"Received unexpected error: context deadline exceeded",
	"Received unexpected error: listen tcp 127.0.0.1:1: bind: address already in use",
	"Received unexpected error: fork/exec /usr/bin/etcd: cannot allocate memory",
	"Received unexpected error: open /dev/null: too many open files",
	"Received unexpected error: write /tmp/x: no space left on device",
	`"31s" is not less than "30s"`,
	`"1" is not greater than "1"`,
	"not in time:",
	"panic: runtime error: invalid memory address or nil pointer dereference",
	"fatal error: runtime: out of memory",
	"WARNING: DATA RACE",
	"etcdtest: goroutines are left: 1",
	"goleak: Errors on successful test run: found unexpected goroutines:",
	"INVALID: ",
}

// specific refuses an expectation that a meaningless failure would match.
func specific(re *regexp.Regexp) error {
	for _, s := range anyones {
		if re.MatchString(s) {
			return fmt.Errorf("matches %q: that may be any test's failure", s)
		}
	}
	return nil
}
