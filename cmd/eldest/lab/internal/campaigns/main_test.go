package campaigns_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Parallel(8)
	goleak.VerifyTestMain(m, etcdtest.Embedded...)
}
