package service

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// What was told of an act during the play is what the summary says, whatever comes in
// later.
func TestAnActHasOneSetOfFigures(t *testing.T) {
	b := tell(t, good)
	var out bytes.Buffer
	s := &stage{Env: &scenario.Env[Fact]{Tape: story.NewTape(&out, story.Style{})}}
	end := 0
	for i, f := range b.facts {
		s.History.Add(f)
		if f.Kind == Settled && i > 10 { // the first act is over
			end = i
			break
		}
	}
	for _, a := range b.attempts {
		if a.At.Before(b.facts[end].At) {
			s.attempts.Add(a)
		}
	}
	s.tally()
	s.Tape.Flush()
	require.Len(t, s.acts, 1)
	told := s.acts[0]

	all := rows(exhibit(b.facts, b.attempts, b.changes))
	require.Greater(t, len(all), 1)
	last := all[len(all)-1]
	all[0].Done++ // as if one had been missed
	all = s.reckoned(all)
	require.Equal(t, told, all[0])
	require.Equal(t, last, all[len(all)-1])
	require.Contains(t, out.String(), told.words(story.Style{}))
}

func TestOneIsSingular(t *testing.T) {
	x := exhibit(tell(t, good).facts, nil, nil)
	require.Equal(t, "1 stop, 1 kill, 1 suspension, 1 leader and 1 follower cut off, while the client asked", x.checkFaults().Detail)
}
