package web_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/curator/web"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// counter is what the leader serves, made for each tenure: POST adds one. It writes through the
// tenure's guard, so that a former leader adds nothing.
func counter(front func() *web.Front, id string, l *elector.Leadership) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got, err := l.Txn(r.Context()).Then(clientv3.OpGet("web-counter")).Commit()
		if err != nil {
			front().Refuse(w, err, true)
			return
		}
		n := 1
		for _, kv := range got.Responses[0].GetResponseRange().Kvs {
			n = len(kv.Value) + 1
		}
		value := make([]byte, n)
		if _, err := l.Txn(r.Context()).Then(clientv3.OpPut("web-counter", string(value))).Commit(); err != nil {
			front().Refuse(w, err, false)
			return
		}
		fmt.Fprintf(w, "%d, by %s", n, id)
	})
}

// start runs one node of the service until stop. A program gets its client from clientv3.New, and
// uses an http.Server with its own address.
func start(client *clientv3.Client, id string) (e *elector.Elector, url string, stop func()) {
	var front *web.Front
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { front.ServeHTTP(w, r) }))
	e, err := elector.New(elector.Config{
		Election: "counter", NodeID: id, Address: server.Listener.Addr().String(), Source: elector.Always(elector.Client(client)),
	})
	check(err)
	front, err = web.New(web.Config{Node: e, Election: "counter", NodeID: id})
	check(err)
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = front.Run(ctx) })
	running.Go(func() {
		_ = e.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			return front.Lead(ctx, l, counter(func() *web.Front { return front }, id, l))
		})
	})
	return e, server.URL, func() {
		cancel()
		running.Wait() // leadership is given up
		server.Close()
	}
}

// Three nodes of a service. A client sends its requests to the third one and need not know which
// node leads. It sends a request again if the answer is 503: nothing was applied.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{Members: 1})
	check(err)
	defer etcd.Close()
	client, err := etcd.Dial()
	check(err)
	defer client.Close()

	anna, _, stopAnna := start(client, "anna")
	await(ctx, anna, elector.Leading)
	bert, _, stopBert := start(client, "bert")
	await(ctx, bert, elector.Following) // so that bert is the next one
	_, url, stopCleo := start(client, "cleo")
	defer stopCleo()
	defer stopBert()

	add := func() {
		for {
			out, err := http.Post(url, "", nil)
			check(err)
			body, _ := io.ReadAll(out.Body)
			_ = out.Body.Close()
			if out.StatusCode != http.StatusServiceUnavailable {
				fmt.Printf("%d: %s\n", out.StatusCode, body)
				return
			}
		}
	}
	add()
	add()
	stopAnna()
	add()
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 200: 1, by anna
	// 200: 2, by anna
	// 200: 3, by bert
}

func await(ctx context.Context, e *elector.Elector, role elector.Role) {
	_, err := e.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() == role })
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
