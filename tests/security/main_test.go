package security

import (
	"os"
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(memberEnv); spec != "" {
		beMember(spec)
		return
	}
	etcdtest.Main(m)
}
