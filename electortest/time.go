package electortest

import (
	"testing/synctest"
	"time"
)

// Advance lets d pass, and then waits until all goroutines of the test wait. The test must run in
// virtual time, with testing/synctest. d must not be negative.
func (e *Election) Advance(d time.Duration) {
	e.t.Helper()
	e.settle()
	time.Sleep(d)
	synctest.Wait()
}

// settle waits until all other goroutines wait.
func (e *Election) settle() {
	e.t.Helper()
	defer func() {
		e.t.Helper()
		if recover() != nil {
			e.t.Fatal("electortest: Advance: time can only be advanced in virtual time: call it inside testing/synctest.Test")
		}
	}()
	synctest.Wait() // panics outside virtual time
}
