package main

import (
	"regexp"
	"strings"
)

// crashes are the ends of a test binary that are no --- FAIL.
var crashes = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE|etcdtest: goroutines are left|goleak: )`)

var (
	// An assertion's labels stand in a column, and what goes on below a label in the
	// next one.
	label    = regexp.MustCompile(`^\s+(Error Trace|Error|Test|Messages): +\t(.*)$`)
	further  = regexp.MustCompile(`^\s+\t {12}\t(.*)$`)
	ownWords = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (\S.*)$`)
	// What ends the report of a crash: the next thing that package testing says.
	reported = regexp.MustCompile(`^(=== |\s*--- |PASS$|FAIL|exit status |={10})`)
)

// long is how many lines of a crash are looked at: the goroutine that crashed, or the two
// that raced.
const long = 60

// failures are the reasons that a test gave for failing, one line each: first the
// assertions and crashes as they came, then what it said in its own words, which a log
// is, too. An assertion is "what was wrong / the message".
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
			i-- // the line that ended it is looked at as well
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
