package dropin

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	// Half of the rows wait for seconds for what must not happen, or does not with etcd's package.
	etcdtest.Parallel(24)
	etcdtest.Main(m)
}
