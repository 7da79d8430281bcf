package feed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", mostText+1)
	require.NoError(t, Action{Do: Evict, Key: long, Breakpoints: make([]string, mostBreakpoints)}.Check())
	for want, a := range map[string]Action{
		"/play":         {Do: Play},
		"1025 bytes":    {Do: long},
		"a text of":     {On: long},
		"want 1024":     {Breakpoints: []string{"", long}},
		"a key of":      {Key: strings.Repeat("x", mostKey+1)},
		"33 breakpoint": {Breakpoints: make([]string, mostBreakpoints+1)},
	} {
		require.ErrorContains(t, a.Check(), want)
		require.ErrorContains(t, Scenario{Steps: []Step{{}, {Action: a}}}.Check(), "step 2: ")
	}
	require.ErrorContains(t, Scenario{}.Check(), "no steps")
	require.ErrorContains(t, Scenario{Name: long, Steps: []Step{{}}}.Check(), "name")
}
