// Package clitest is what tests of eldest's commands have in common: command lines in this process and
// processes, what no output may do to a terminal, and control groups, for programs that make their own
// and for those that fork without end.
package clitest
