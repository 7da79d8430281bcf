package alerts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience bounds every wait: it is much longer than any wait takes on a machine that is not busy.
const patience = 60 * time.Second

// docs is the directory of the operators' files.
const docs = "../../docs/observability"

// tool returns the path of one of Prometheus' programs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		require.Failf(t, "no "+name, "install it: apt-get install -y --no-install-recommends prometheus")
	}
	t.Skipf("SKIPPED: no %s here: apt-get install -y --no-install-recommends prometheus", name)
	return ""
}

// eldest builds the command once and returns its path.
var eldest = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "eldest-alerts-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "eldest")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", path, ".")
	build.Dir = "../../cmd/eldest"
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("building eldest: %w\n%s", err, out)
	}
	return path, nil
})

// participant is an eldest process that can be scraped.
type participant struct {
	*etcdtest.Program
	// address is its HTTP address, HOST:PORT, once it serves.
	address string
}

var serving = regexp.MustCompile(`serving http://([^/]+)/metrics`)

// participate starts an eldest process; serves waits until it reports its HTTP address.
func participate(t *testing.T, etcd *etcdtest.Cluster, ttl string, args ...string) *participant {
	t.Helper()
	path, err := eldest()
	require.NoError(t, err)
	args = append(args, "--ttl", ttl, "--http", "127.0.0.1:0", "--endpoints", strings.Join(etcd.Endpoints(), ","))
	return &participant{Program: etcdtest.Run(t, exec.Command(path, args...))}
}

// serves waits until the process reports its HTTP address, and returns it.
func (p *participant) serves(t *testing.T) string {
	t.Helper()
	p.address = p.finds(t, serving)
	return p.address
}

// finds waits until the process has said what matches a pattern, and returns the match of its group.
func (p *participant) finds(t *testing.T, pattern *regexp.Regexp) (group string) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := pattern.FindStringSubmatch(p.Said())
		if found == nil {
			return false
		}
		group = found[1]
		return true
	}, patience, 20*time.Millisecond, "it never said %v", pattern)
	return group
}
