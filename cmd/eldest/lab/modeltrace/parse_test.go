package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each kind of line means what the package comment says.
func TestParse(t *testing.T) {
	t.Parallel()
	steps, err := parse(strings.NewReader(strings.Join([]string{
		"~ c1 begin key",
		"~ c1 call put key, who is older? => token 1",
		"~ c0 send r0 lease?",
		"~ etcd recv r0",
		"~ etcd send a0 c0 granted for 4 ticks",
		"~ tick but for c0",
		"~ c1 sure 2",
		"~ c0 hears own key is gone",
		"~ outside note key of c1 removed",
		"~ c1 end key",
	}, "\n")))
	require.NoError(t, err)
	require.Equal(t, []step{
		{who: "A", what: begin, name: "key"},
		{who: "A", what: call, text: "put key, who is older?", reply: "token 1"},
		{who: "B", what: send, name: "r0", to: "etcd", text: "lease?"},
		{who: "etcd", what: recv, name: "r0"},
		{who: "etcd", what: send, name: "a0", to: "B", text: "granted for 4 ticks"},
		{what: tick, text: "but for B"},
		{who: "A", what: sure, text: "2"},
		{who: "B", what: hears, text: "own key is gone"},
		{who: "outside", what: note, text: "key of A removed"},
		{who: "A", what: end, name: "key"},
	}, steps)
}

// What cannot be drawn is an error: a step that is silently left out would make the
// diagram a lie.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, trace := range map[string]string{
		"nothing":              "",
		"a line of spin's own": "spin: trail ends after 53 steps",
		"an unknown verb":      "~ c0 dances",
		"a call unanswered":    "~ c0 call put key",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(strings.NewReader(trace))
			require.Error(t, err)
		})
	}
}
