package main

import (
	"regexp"
	"strings"
)

// crashes are the ends of a test binary other than --- FAIL.
var crashes = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE|etcdtest: goroutines are left|goleak: )`)

var (
	// An assertion's labels are in a column, and the continuation of a label is in the next one.
	label    = regexp.MustCompile(`^\s+(Error Trace|Error|Test|Messages): +\t(.*)$`)
	further  = regexp.MustCompile(`^\s+\t {12}\t(.*)$`)
	ownWords = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (\S.*)$`)
	// The end of the report of a crash: the next line of package testing.
	reported = regexp.MustCompile(`^(=== |\s*--- |PASS$|FAIL|exit status |={10})`)
)

// long is how many lines of a crash are read: the goroutine that crashed, or the two that raced.
const long = 60

// failures are a test's reasons for failing, one line each: first the assertions and crashes in
// their order, then its other messages, logs included. An assertion is "what was wrong / the
// message".
func failures(output string) (all []string) {
	var words []string
	lines := strings.Split(output, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case crashes.MatchString(line):
			var crash []string
			for ; i < len(lines) && len(crash) < long && !reported.MatchString(lines[i]); i++ {
				crash = append(crash, lines[i])
			}
			i-- // the line that ended it is read as well
			all = append(all, flat(crash))
		case label.MatchString(line):
			parts := map[string][]string{}
			for now := ""; i < len(lines); i++ {
				if m := label.FindStringSubmatch(lines[i]); m != nil && parts[m[1]] == nil {
					now = m[1]
					parts[now] = []string{m[2]}
				} else if m := further.FindStringSubmatch(lines[i]); m != nil {
					parts[now] = append(parts[now], m[1])
				} else {
					break
				}
			}
			i--
			text := flat(parts["Error"])
			if said := flat(parts["Messages"]); said != "" {
				text += " / " + said
			}
			all = append(all, text)
		default:
			if m := ownWords.FindStringSubmatch(line); m != nil {
				words = append(words, m[1])
			}
		}
	}
	return append(all, words...)
}

func flat(lines []string) string { return strings.Join(strings.Fields(strings.Join(lines, " ")), " ") }
