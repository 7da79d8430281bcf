package rig

import (
	_ "unsafe" // for go:linkname

	_ "go.etcd.io/etcd/client/v3" // owns the variable below
)

// clientNeverDone is clientv3's valCtxCh: the Done channel, made when the
// program starts and never closed, of the context of every watch stream. A
// goroutine of a bubble that waits on a channel from outside does not count as
// waiting for good, and the bubble's clock would never move again; so each
// bubble puts a channel of its own there. Pinned to client/v3 v3.7.3:
// TestVirtualTime fails at once when the variable moves.
//
//go:linkname clientNeverDone go.etcd.io/etcd/client/v3.valCtxCh
var clientNeverDone chan struct{}
