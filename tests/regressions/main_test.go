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
	// The tests mostly wait for outages and leases of seconds.
	etcdtest.Parallel(24)
	etcdtest.Main(m)
}
