// Package story is how demos and reports are worded: colours of a terminal (Style), what a check
// found (Verdict), counts and times in words.
package story
