// Package clitest is what tests of eldest's commands have in common: a command line in this
// process, and what no output may do to a terminal.
package clitest
