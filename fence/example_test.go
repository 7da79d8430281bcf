package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// A store outside etcd takes writes over HTTP from the leader of "billing". Anna leads and
// writes; Bert leads and writes; a request of Anna's that was under way all the time
// arrives last.
func Example() {
	ctx := context.Background()
	etcd, stop := etcdtest.ForExample()
	defer stop()

	// The store. Memory is enough for an example, and for a cache.
	fenced, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: &fence.Memory{}})
	check(err)
	store := httptest.NewServer(fenced.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		election, token, _ := fence.TokenFrom(r.Context())
		fmt.Println("written in a tenure of", election, "with a token:", token > 0)
	})))
	defer store.Close()

	// The leaders.
	var sessions []*lease.Session
	lead := func(name string) *election.Leadership {
		session, err := lease.Open(ctx, lease.Config{Lease: etcd})
		check(err)
		sessions = append(sessions, session)
		candidate, err := election.New(election.Config{
			Election: "billing", Session: session, KV: etcd, Watcher: etcd, Value: []byte(name),
		})
		check(err)
		leadership, err := candidate.Campaign(ctx)
		check(err)
		return leadership
	}
	write := func(leader fence.Tenure) error {
		client := http.Client{Transport: fence.Transport{Tenure: leader}}
		resp, err := client.Post(store.URL, "text/plain", strings.NewReader("a bill"))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return fence.Refused(resp)
	}
	anna := lead("anna")
	fmt.Println("anna:", write(anna))
	underWay, _ := http.NewRequestWithContext(ctx, http.MethodPost, store.URL, nil)
	value, _ := fence.Format(anna.Election(), anna.Token())
	underWay.Header.Set(fence.Header, value)
	_ = anna.Resign(ctx)
	bert := lead("bert")
	fmt.Println("bert:", write(bert))

	err = write(anna)
	fmt.Println("anna again: not leading:", errors.Is(err, eldest.ErrNotLeading), "and known here:", errors.Is(err, eldest.ErrResigned))
	resp, err := http.DefaultClient.Do(underWay)
	check(err)
	defer resp.Body.Close()
	fmt.Println("what was under way:", resp.Status)
	for _, session := range sessions {
		_ = session.Close(ctx)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// written in a tenure of billing with a token: true
	// anna: <nil>
	// written in a tenure of billing with a token: true
	// bert: <nil>
	// anna again: not leading: true and known here: true
	// what was under way: 412 Precondition Failed
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
