package order_test

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }
