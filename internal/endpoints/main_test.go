package endpoints

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) } // no goroutine is left by a closed client
