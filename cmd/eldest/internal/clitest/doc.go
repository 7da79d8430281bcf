// Package clitest is what tests of eldest's commands have in common: command lines in this process
// and in others, checks that output does not control a terminal, a client of the page of "eldest
// lab", and control groups for programs that make their own.
package clitest
