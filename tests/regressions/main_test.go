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
	etcdtest.Main(m)
}
