package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// Whoever compares the lines of two candidates must not see two leaders because one of
// them wrote its line late: a line has the time of the fact.
func TestLinesHaveTheTimeOfTheFact(t *testing.T) {
	var out strings.Builder
	events := newCampaignEvents(&out, true, "svc", func(line string) { t.Error(line) }, func(err error) { t.Error(err) })
	hooks := teller(events.tell).candidateHooks(t.Context(), nil)
	fact := time.Now().Add(-time.Hour)
	hooks.Registered(election.RegisteredEvent{Token: 5, At: fact.Add(1)})
	hooks.Waiting(election.WaitingEvent{Token: 5, At: fact.Add(2)})
	hooks.Won(election.WonEvent{Token: 5, At: fact.Add(3)})
	hooks.Ended(election.EndedEvent{Token: 5, Led: true, Cause: eldest.ErrResigned, At: fact.Add(4)})
	events.Close(patience)

	for i, event := range []string{"registered", "waiting", "leader", "resigned"} {
		line, rest, _ := strings.Cut(out.String(), "\n")
		out.Reset()
		out.WriteString(rest)
		var told struct {
			Event string    `json:"event"`
			Time  time.Time `json:"time"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &told))
		require.Equal(t, event, told.Event)
		require.True(t, told.Time.Equal(fact.Add(time.Duration(i+1))), "%s: %s", event, told.Time)
	}
}
