package curator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	grpcpeer "google.golang.org/grpc/peer"
)

// heartbeat finds out that a leader is dead whose connection does not break: its machine
// lost its power, or a network drops its packets. Without it the calls in flight would
// hang for as long as gRPC's own pings take, which is at least ten seconds.
//
// While calls are in flight it asks the leader's health service, which every node
// answers in every state. Any answer will do, a refusal as well: somebody is there.
type heartbeat struct {
	every   time.Duration // between two questions
	timeout time.Duration // of each question
	misses  int           // in a row that give the connection up
}

// Of a leader that falls silent it is known after 3 to 6 seconds. One that is so busy
// that it does not come to answer for two seconds, twice, loses its connections, and the
// calls on them.
var everyday = heartbeat{every: time.Second, timeout: 2 * time.Second, misses: 2}

// watch returns when the link was given up, by itself or by others.
func (h heartbeat) watch(l *link) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
		}
		if l.calls.Load() == 0 || h.answered(l) {
			missed = 0
			continue
		}
		if missed++; missed >= h.misses {
			l.giveUp(fmt.Errorf("it did not answer %d times within %v", missed, h.timeout))
		}
	}
}

// answered asks once. Where the leader limits the streams of a connection, and calls have
// taken all of them, nothing could be asked: that says nothing of the leader, and gRPC's
// pings have to do.
func (h heartbeat) answered(l *link) bool {
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	var there grpcpeer.Peer
	_, err := healthpb.NewHealthClient(l).Check(ctx, &healthpb.HealthCheckRequest{Service: healthAlive}, grpc.Peer(&there))
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	return there.Addr == nil && l.GetState() == connectivity.Ready
}
