package bench

import (
	"context"
	"path"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Wire counts what clients sent and were told: requests as gRPC was handed them, so
// that one which the client repeats by itself counts again.
type Wire struct {
	// Reads are ranges, and transactions that only read; Writes all other requests
	// that change keys. Leases are grants, revocations and renewals.
	Reads  int64 `json:"reads"`
	Writes int64 `json:"writes"`
	Leases int64 `json:"leases"`
	// Renewals are those of Leases that renew, which etcd's client does on streams.
	Renewals int64 `json:"renewals"`
	// Questions are those to a majority: requests for the list of members. They are counted
	// nowhere else.
	Questions int64 `json:"questions,omitempty"`
	// Answers are those to single requests: to all of the above, but for Renewals.
	Answers int64 `json:"answers"`
	// Watches and Unwatches are requests to open and to end a watch, Streams the
	// streams that were opened for them, Events what came back.
	Watches   int64 `json:"watches"`
	Unwatches int64 `json:"unwatches"`
	Streams   int64 `json:"streams"`
	Events    int64 `json:"events"`
}

// Requests is everything that was sent: unary requests and messages on streams.
func (w Wire) Requests() int64 { return w.Reads + w.Writes + w.Leases + w.Watches + w.Unwatches }

// Unanswered is how many single requests are under way.
func (w Wire) Unanswered() int64 { return w.Reads + w.Writes + w.Leases - w.Renewals - w.Answers }

// Minus is what was counted since before.
func (w Wire) Minus(before Wire) Wire { return w.plus(before, -1) }

// Plus adds what another client counted.
func (w Wire) Plus(other Wire) Wire { return w.plus(other, 1) }

func (w Wire) plus(o Wire, sign int64) Wire {
	return Wire{
		Reads: w.Reads + sign*o.Reads, Writes: w.Writes + sign*o.Writes,
		Leases: w.Leases + sign*o.Leases, Renewals: w.Renewals + sign*o.Renewals,
		Questions: w.Questions + sign*o.Questions, Answers: w.Answers + sign*o.Answers,
		Watches: w.Watches + sign*o.Watches, Unwatches: w.Unwatches + sign*o.Unwatches,
		Streams: w.Streams + sign*o.Streams, Events: w.Events + sign*o.Events,
	}
}

// meter counts for the clients that are made with its options. Its methods may be
// called from many goroutines.
type meter struct {
	reads, writes, leases, renewals, questions, answers, watches, unwatches, streams, events atomic.Int64
}

// options are for the clients to be counted.
func (m *meter) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(m.unary),
		grpc.WithChainStreamInterceptor(m.stream),
	}
}

// read returns the counts so far. Answers are read first, so that none is seen without
// its request.
func (m *meter) read() Wire {
	answers := m.answers.Load()
	return Wire{
		Answers: answers, Questions: m.questions.Load(),
		Reads: m.reads.Load(), Writes: m.writes.Load(), Leases: m.leases.Load(), Renewals: m.renewals.Load(),
		Watches: m.watches.Load(), Unwatches: m.unwatches.Load(), Streams: m.streams.Load(), Events: m.events.Load(),
	}
}

func (m *meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch r := req.(type) {
	case *etcdserverpb.RangeRequest:
		m.reads.Add(1)
	case *etcdserverpb.TxnRequest:
		if readsOnly(r) {
			m.reads.Add(1)
		} else {
			m.writes.Add(1)
		}
	case *etcdserverpb.PutRequest, *etcdserverpb.DeleteRangeRequest:
		m.writes.Add(1)
	case *etcdserverpb.MemberListRequest:
		m.questions.Add(1)
		return invoke(ctx, method, req, reply, cc, opts...)
	default:
		if path.Base(path.Dir(method)) != "etcdserverpb.Lease" {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		m.leases.Add(1)
	}
	defer m.answers.Add(1)
	return invoke(ctx, method, req, reply, cc, opts...)
}

// readsOnly reports whether a transaction cannot change anything.
func readsOnly(txn *etcdserverpb.TxnRequest) bool {
	for _, ops := range [][]*etcdserverpb.RequestOp{txn.Success, txn.Failure} {
		for _, op := range ops {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}

func (m *meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	if path.Base(method) == "Watch" {
		m.streams.Add(1)
	}
	return &meteredStream{ClientStream: s, meter: m}, nil
}

type meteredStream struct {
	grpc.ClientStream
	meter *meter
}

func (s *meteredStream) SendMsg(msg any) error {
	switch r := msg.(type) {
	case *etcdserverpb.WatchRequest:
		switch {
		case r.GetCreateRequest() != nil:
			s.meter.watches.Add(1)
		case r.GetCancelRequest() != nil:
			s.meter.unwatches.Add(1)
		}
	case *etcdserverpb.LeaseKeepAliveRequest:
		s.meter.leases.Add(1)
		s.meter.renewals.Add(1)
	}
	return s.ClientStream.SendMsg(msg)
}

func (s *meteredStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	if resp, ok := msg.(*etcdserverpb.WatchResponse); ok && err == nil {
		s.meter.events.Add(int64(len(resp.Events)))
	}
	return err
}
