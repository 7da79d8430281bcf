package load

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

var (
	full    = flag.Duration("load.for", 0, "put the full load on, for so long; 0: the everyday load")
	part    = flag.Float64("load.part", 1, "put only this part of the full load on")
	seed    = flag.Uint64("load.seed", 1, "decides who departs, and how")
	clients = flag.Int("load.clients", 0, "the candidates share so many clients of etcd; 0: as the load says")
	report  = flag.String("load.json", "", "write the summary to this file")
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// The load: the package comment lists what must hold. By default it is small.
func TestLoad(t *testing.T) {
	scale := Everyday()
	if *full > 0 {
		scale = Full().By(*part)
		scale.For = Span(*full)
	}
	scale.Seed = *seed
	if *clients > 0 {
		scale.Clients = *clients
	}
	begun := time.Now()
	summary, err := Run(scale, func(line string) { t.Log(line) })
	require.NoError(t, err)
	text, err := json.MarshalIndent(summary, "", "  ")
	require.NoError(t, err)
	if *report != "" {
		require.NoError(t, os.WriteFile(*report, append(text, '\n'), 0o644))
	}
	summary.Samples = nil
	brief, err := json.MarshalIndent(summary, "", "  ")
	require.NoError(t, err)
	t.Logf("after %v: %s", time.Since(begun).Round(time.Second), brief)
	if !summary.Heap.Judged {
		t.Log("too short to say whether memory is flat: that takes -load.for of at least 5m")
	}
	require.Equal(t, Held, summary.Verdict, "violations: %q; load missed: %q", summary.Violations, summary.Missed)
}
