package regressions

import (
	"os"
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		beChild(role)
		return
	}
	// They wait for outages and leases of seconds, and for little else.
	etcdtest.Parallel(16)
	etcdtest.Main(m)
}
