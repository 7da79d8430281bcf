package sim

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// readEach is after how many of its own writes a participant reads.
const readEach = 5

// readAlong lets the admin read what leaders write until stop is called, which waits
// for it.
func (s *stage) readAlong() (stop func()) {
	ctx, cancel := context.WithCancel(s.world.T.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			s.read(ctx, "admin", s.admin.Client)
			timer := time.NewTimer(s.tempo.reads)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// read makes one linearizable read of the data key and tells of it, if there is an
// answer.
func (s *stage) read(ctx context.Context, who string, client clientv3.KV) {
	once, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	asked := s.world.Now()
	resp, err := client.Get(once, dataKey)
	if err != nil {
		return
	}
	name := ""
	if len(resp.Kvs) > 0 {
		if name, err = oracle.ReadValue(string(resp.Kvs[0].Value)); err != nil {
			name = string(resp.Kvs[0].Value) // nobody wrote it, and the checker says so
		}
	}
	s.log.Add(oracle.Event{Who: who, Kind: oracle.Read, Write: name, At: asked, Until: s.world.Now()})
}
