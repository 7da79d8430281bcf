package retryrpc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Reconnect has a client that lost its connections try again now, and from the shortest
// pause on; at most once in reconnectEvery, however many ask for it. Left to itself gRPC
// doubles its pause up to two minutes, during which every request fails at once and
// nothing is even tried: longer than most leases live. Whoever asks again and again has a
// pause of its own, so it says when. Clients of other kinds are left alone; a connection
// that works is not touched. Safe for concurrent use.
//
// Not beside a change of the client's endpoints (AutoSyncInterval, Sync, SetEndpoints):
// ResetConnectBackoff, of gRPC 1.85, takes its map of connections under its lock and walks
// through it without, and a connection that is made or dropped meanwhile ends the process.
// There is no other way to cut the pause short, and no way to see here whether endpoints
// change, so package lease tells users.
func Reconnect(client any) {
	if c, ok := client.(*clientv3.Client); ok && c != nil && due(c) {
		if conn := c.ActiveConnection(); conn != nil {
			conn.ResetConnectBackoff()
		}
	}
}

const reconnectEvery = 500 * time.Millisecond

// reconnected says when each client was last told to connect, as a weak pointer to it and
// an *atomic.Int64. It is for the whole process, because a client is shared by rooms that
// do not know of each other; it keeps no client alive.
var reconnected sync.Map

func due(c *clientv3.Client) bool {
	key := weak.Make(c)
	last, known := reconnected.LoadOrStore(key, new(atomic.Int64))
	if !known {
		runtime.AddCleanup(c, func(key weak.Pointer[clientv3.Client]) { reconnected.Delete(key) }, key)
	}
	at, now := last.(*atomic.Int64), time.Now().UnixNano()
	before := at.Load()
	return now-before >= int64(reconnectEvery) && at.CompareAndSwap(before, now)
}
