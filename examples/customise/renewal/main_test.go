package renewal_test

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 33: what etcd's concurrency package fixes can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }
