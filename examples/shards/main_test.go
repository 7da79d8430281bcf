package main

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/electortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A shard counts as led for as long as its tenure lasts, however it ends.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := electortest.New(t)
		s := &shards{giveUp: make(chan struct{})}
		e.Start(s.lead)
		for _, end := range []func(){
			func() { s.giveUp <- struct{}{} },
			func() { e.Lose(eldest.ErrDeposed) },
			func() { e.Lose(eldest.ErrSessionLost) },
		} {
			e.Win()
			e.Advance(0) // until lead waits
			require.EqualValues(t, 1, s.led.Load())
			end()
			require.NoError(t, e.Wait())
			require.Zero(t, s.led.Load())
		}
	})
}
