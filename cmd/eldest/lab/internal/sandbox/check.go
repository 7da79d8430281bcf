package sandbox

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Limits of actions and scenarios.
const (
	mostDelay = time.Minute
	mostWord  = 64 // bytes of a kind of messages
	mostSteps = 500
	longest   = 10 * time.Minute
)

// check checks what an action is, without the present state of the sandbox.
func (s *Sandbox) check(a feed.Action) error {
	d, known := deeds[a.Do]
	switch {
	case a.Do == feed.Evict:
		return feed.Refused("%s is for an existing cluster", a.Do)
	case !known:
		return feed.Refused("unknown action %.*q", mostWord, a.Do)
	case d.on == aParticipant && a.On == "" && (a.Do != feed.DeleteKey || a.Key == ""):
		return feed.Refused("%s needs a participant", a.Do)
	case d.on == aMessage && a.On == "" && a.Message == 0:
		return feed.Refused("%s needs a message, or a participant", a.Do)
	case d.on == aMember && (a.Member < 0 || a.Member >= s.field.Size()):
		return feed.Refused("there is no member %d: they are numbered from 0 to %d", a.Member, s.field.Size()-1)
	case d.check != nil:
		return d.check(a)
	}
	return nil
}

func checkAdd(a feed.Action) error {
	switch {
	case !slices.Contains(feed.Kinds, a.Kind):
		return feed.Refused("unknown kind of participant %.*q", mostWord, a.Kind)
	case !appliesTo(a.Rule, a.Kind):
		return feed.Refused("the rule %.*q cannot be taken out of the kind %s", mostWord, a.Rule, a.Kind)
	}
	return nil
}

func checkRule(a feed.Action) error {
	if a.Rule != "" && !slices.ContainsFunc(rules, func(r feed.Rule) bool { return r.Name == a.Rule }) {
		return feed.Refused("unknown rule %.*q", mostWord, a.Rule)
	}
	return nil
}

func checkCut(a feed.Action) error {
	if !slices.Contains([]string{"", bothWays, requests, replies}, a.Way) {
		return feed.Refused("unknown way %.*q: want %s, %s or %s", mostWord, a.Way, bothWays, requests, replies)
	}
	return nil
}

func checkDelay(a feed.Action) error {
	if most := feed.Milliseconds(mostDelay); !(a.MS >= 0 && a.MS <= most) { // NaN is refused as well
		return feed.Refused("a delay of %v ms: want 0 to %v", a.MS, most)
	}
	return nil
}

func checkBreakpoint(a feed.Action) error {
	kinds := []string{string(wiretap.Request), string(wiretap.Answer), string(transcript.Event), string(wiretap.End)}
	for _, b := range a.Breakpoints {
		method, kind, _ := strings.Cut(b, " ")
		if method == "" || len(b) > mostWord || !slices.Contains(kinds, kind) {
			return feed.Refused("unknown kind of messages %.*q: want a method and one of %s, such as %q", mostWord, b, strings.Join(kinds, ", "), "Txn answer")
		}
	}
	return nil
}

// checkScenario checks a scenario before anything of it is done: the participants that it names are
// those that it has added before.
func (s *Sandbox) checkScenario(c feed.Scenario) error {
	if err := c.Check(); err != nil {
		return feed.Refused("%w", err)
	}
	if len(c.Steps) > mostSteps {
		return feed.Refused("the scenario has %d steps: want %d at most", len(c.Steps), mostSteps)
	}
	added, total := 0, 0.0
	for i, step := range c.Steps {
		// The limit is also checked here, so that no sum is too large.
		if after := step.AfterMS; !(after >= 0 && after <= feed.Milliseconds(longest)) {
			return feed.Refused("step %d: %v ms after the step before: want 0 to %v", i+1, after, feed.Milliseconds(longest))
		}
		total += step.AfterMS
		err := s.check(step.Action)
		switch {
		case err != nil:
			return fmt.Errorf("step %d: %w", i+1, err)
		case step.Message != 0:
			return feed.Refused("step %d: messages have other numbers each time: use on and match", i+1)
		case step.Do == feed.Add:
			added++
		case step.On != "" && !isAdded(step.On, added):
			return feed.Refused("step %d: there is no participant %.*q then: %d were added before", i+1, mostWord, step.On, added)
		}
	}
	if total > feed.Milliseconds(longest) || math.IsNaN(total) {
		return feed.Refused("the scenario takes longer than %v", longest)
	}
	return nil
}

// isAdded reports whether a name is that of one of the first participants.
func isAdded(name string, added int) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "p"))
	return err == nil && n >= 1 && n <= added && name == participantName(n)
}

// participantName returns the name of the n-th participant, from 1.
func participantName(n int) string { return "p" + strconv.Itoa(n) }
