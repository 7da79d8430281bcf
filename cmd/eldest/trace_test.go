package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each renewal of a campaign is confirmed by a majority: what wraps the client must not
// hide who can be asked (decision 0015).
func TestCampaignAsksTheMajority(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"campaign jobs me --ttl 4s", "campaign jobs me --ttl 4s --namespace teams/a/", "run jobs --ttl 4s --grace 100ms -- sleep 60"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			stays := filepath.Join(t.TempDir(), "stays")
			require.NoError(t, os.WriteFile(stays, nil, 0o600))
			script := "eldest " + command + ` & while test -e ` + stays + `; do sleep 0.05; done; kill $!; wait`
			p := nowhere(t).start("trace", "--", "sh", "-c", script)
			p.Eventually(func() bool {
				text := p.Errors()
				return strings.Contains(text, "LeaseKeepAlive") && strings.Contains(text, "MemberList")
			}, 10*time.Millisecond, "renewed without asking")
			require.NoError(t, os.Remove(stays))
			p.Over()
		})
	}
}
