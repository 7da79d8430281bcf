//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// checkHealth runs --health again and again, until the program is over. Each success is a
// beat of the pulse; without beats the session stops renewing, and the lease ends by
// itself: a program that hangs keeps nobody from leading.
func (t *tenure) checkHealth(env []string, pid int) {
	env = append(slices.Clone(env), fmt.Sprintf("%s=%d", envPID, pid))
	check := job.Shell(t.o.health, env, t.o.healthEvery)
	check.Mute = true
	ticker := time.NewTicker(t.o.healthEvery)
	defer ticker.Stop()
	well := true
	for {
		select {
		case <-t.job.Over():
			return
		case <-ticker.C:
		}
		var failure error
		select {
		case <-t.job.Over():
			return
		case result := <-t.job.Run(check):
			failure = result.Failure()
		}
		if failure == nil {
			t.pulse.Beat()
		}
		if over(t.job) || well == (failure == nil) {
			continue // what happens at the end says nothing; and news are told once
		}
		well = failure == nil
		event := campaignEvent{Event: "healthy"}
		if !well {
			event.Event, event.Cause = "unhealthy", failure.Error()
		}
		t.events.tell(event)
	}
}

func over(j *job.Job) bool {
	select {
	case <-j.Over():
		return true
	default:
		return false
	}
}
