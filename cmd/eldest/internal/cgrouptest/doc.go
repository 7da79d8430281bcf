// Package cgrouptest puts tests into control groups, for tests of programs that make their
// own, and for programs that fork without end. It is for Linux; elsewhere it is empty.
package cgrouptest
