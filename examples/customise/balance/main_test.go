package balance_test

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirements 30 and 33: many elections on one session, and a cap for each process.
func TestMain(m *testing.M) { etcdtest.Main(m) }
