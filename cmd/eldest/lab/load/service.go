package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

// space is where the service keeps its data and its trail.
var space = kv.SpaceOf(service.Election)

// node is one instance of the service, and a caller's connection to it.
type node struct {
	*curator.Curator
	conn *grpc.ClientConn
}

// serve starts the nodes of the service.
func (r *run) serve() error {
	clients, err := r.dial(r.scale.Nodes)
	for i, client := range clients {
		err = errors.Join(err, r.start(fmt.Sprintf("node-%d", i), client))
	}
	return err
}

func (r *run) start(id string, client *clientv3.Client) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n := &node{}
	n.Curator, err = curator.New(curator.Config{
		Elector: elector.Config{
			Election: service.Election, NodeID: id, Source: elector.Always(elector.Client(client)),
			Session: lease.Options{TTL: time.Duration(r.scale.TTL)},
		},
		Listeners: []curator.Listener{{Listener: listener}},
		Services: func(ctx context.Context, l *elector.Leadership, to grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				r.book.failed("serve", err)
				return err
			}
			kvpb.RegisterKVServer(to, server)
			return nil
		},
		Background: func(ctx context.Context, _ *elector.Leadership) error {
			r.book.count("tenures of the service")
			select { // and then another node leads
			case <-time.After(time.Duration(r.scale.HandOver)):
			case <-ctx.Done():
			}
			return nil
		},
	})
	if err == nil {
		n.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	r.nodes = append(r.nodes, n)
	r.atEnd(func() error {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, eldest.ErrStuck) {
			r.book.violation("a node of the service ended with %v", err)
		}
		return n.conn.Close()
	})
	return nil
}

// burst sends all calls at once to nodes that do not lead, waits for the answers, and judges them by
// the trail.
func (r *run) burst() {
	to := slices.DeleteFunc(slices.Clone(r.nodes), func(n *node) bool { return n.Status().Role() == elector.Leading })
	number := fmt.Sprintf("%06d/", r.book.counted("bursts"))
	attempts, start := make([]service.Attempt, r.scale.Calls), make(chan struct{})
	var together sync.WaitGroup
	for i := range attempts {
		together.Go(func() {
			<-start
			attempts[i] = r.attempt(to[i%len(to)], fmt.Sprintf("%s%06d", number, i), fmt.Sprint(i))
		})
	}
	begun := time.Now()
	close(start)
	together.Wait()
	r.book.took("a burst of calls", time.Since(begun))
	r.book.count("bursts")
	h := &oracle.History{About: oracle.About{Prefix: service.Election + "/", Data: "data"}}
	kvs, ok := r.audit(space.Trail())
	if !ok {
		return
	}
	for _, kv := range kvs {
		e, err := space.ParseEntry(kv)
		if err != nil {
			r.book.violation("%v", err)
		} else if strings.HasPrefix(e.GetRequestId(), number) { // not a call of unknown outcome of an earlier burst, nor OPEN
			h.Changes = append(h.Changes, oracle.Change{Rev: e.Revision, Key: h.Data, Value: oracle.WriteValue(e.GetToken(), e.GetRequestId())})
		}
	}
	slices.SortFunc(h.Changes, func(a, b oracle.Change) int { return cmp.Compare(a.Rev, b.Rev) })
	for _, a := range attempts {
		e := oracle.Event{Kind: oracle.Sent, At: a.Begin.Sub(begun), Who: "a caller", Write: a.ID}
		h.Events = append(h.Events, e)
		e.Kind, e.At = outcomes[a.Outcome], a.At.Sub(begun)
		e.Token, e.Commit = int64(a.Token), a.Revision
		h.Events = append(h.Events, e)
	}
	r.book.judgeWrites("calls", h)
}

var outcomes = map[service.Outcome]oracle.Kind{
	service.Done: oracle.Acked, service.Refused: oracle.Refused, service.Open: oracle.Unclear,
}

// answerIn is the deadline of a call.
const answerIn = 20 * time.Second

// attempt makes one call and counts how it ended.
func (r *run) attempt(n *node, id, key string) service.Attempt {
	a := service.Attempt{ID: id, Method: service.Put, Key: key}
	err := r.timed("a call", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerIn)
		defer cancel()
		return a.Send(ctx, n.conn)
	})
	_, lost := curator.LostLeadership(err, service.Election)
	kind := a.Answer
	switch {
	case a.Outcome == service.Refused:
		kind += ", nothing applied"
	case lost:
		kind += ", leadership lost"
	}
	r.book.count("calls: " + kind)
	r.book.count("calls")
	if !a.Documented() {
		r.book.violation("a call ended with %v, which is not documented: %v", a.Code, err)
	} else if a.Code == codes.Unavailable && !lost {
		r.book.violation("UNAVAILABLE without its detail: %v", err)
	}
	return a
}
