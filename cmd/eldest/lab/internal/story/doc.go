// Package story formats demos and reports: colours of a terminal (Style), the result of a check
// (Verdict), counts and times.
package story
