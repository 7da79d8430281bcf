package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// register puts the key of a candidate, as a program of etcd's package does, and returns it.
func register(t *testing.T, client *clientv3.Client, election, value string) place {
	t.Helper()
	ctx := etcdtest.Context(t)
	granted, err := client.Grant(ctx, 600)
	require.NoError(t, err)
	key := keys.Candidate(election, int64(granted.ID))
	put, err := client.Put(ctx, key, value, clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	return place{key, value, put.Header.Revision, int64(granted.ID)}
}

// exists reports whether a key exists.
func exists(t *testing.T, client *clientv3.Client, key string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	resp, err := client.Get(ctx, key, clientv3.WithCountOnly())
	require.NoError(t, err)
	return resp.Count > 0
}

// endpoints are the flags with which the command attaches to a cluster.
func endpoints(c *etcdtest.Cluster) []string {
	return []string{"--endpoints", strings.Join(c.Endpoints(), ",")}
}

// An existing cluster, with one lab that only shows it, and one that may change it.
func testExistingCluster(t *testing.T, browser *chromium) {
	cluster := etcdtest.Start(t, etcdtest.Config{})
	client := cluster.Client(t)
	t.Run("elections", func(t *testing.T) { testElectionsOfACluster(t, browser, cluster, client) })
	t.Run("markup", func(t *testing.T) { testMarkupOfACluster(t, browser, cluster, client) })
	t.Run("evict", func(t *testing.T) { testEviction(t, browser, cluster, client) })
}

// All elections are shown, and followed. Nothing can be done to them.
func testElectionsOfACluster(t *testing.T, browser *chromium, cluster *etcdtest.Cluster, client *clientv3.Client) {
	anna := register(t, client, "jobs", "anna")
	bert := register(t, client, "jobs", "bert")
	register(t, client, "mail", "carl")
	l := open(t, browser, endpoints(cluster)...)
	require.Equal(t, "cluster", l.info.Mode)
	require.False(t, l.info.Write)
	u := l.visit()
	u.shows("jobs")
	u.shows("mail")

	u.chooseElection("jobs")
	u.queueShows([]place{anna, bert}, []string{"anna", "bert"})
	require.Empty(t, u.controls(), "it is only shown")

	// The leader changes, and a candidate arrives.
	_, err := client.Revoke(etcdtest.Context(t), clientv3.LeaseID(anna.Lease))
	require.NoError(t, err)
	dora := register(t, client, "jobs", "dora")
	u.queueShows([]place{bert, dora}, []string{"bert", "dora"})
	u.until("its tenures are listed", `document.querySelectorAll("#tenures tbody tr").length === 2`)
	u.chooseElection("mail")
	u.shows("carl")
	_, acted := l.find(0, isAction)
	require.False(t, acted)
}

// With --write, an eviction asks for a confirmation, and then deletes exactly this candidate's key.
func testEviction(t *testing.T, browser *chromium, cluster *etcdtest.Cluster, client *clientv3.Client) {
	const election = "evict"
	anna := register(t, client, election, "anna")
	bert := register(t, client, election, "bert")
	l := open(t, browser, append([]string{election, "--write"}, endpoints(cluster)...)...)
	require.True(t, l.info.Write)
	u := l.visit()
	u.queueShows([]place{anna, bert}, []string{"anna", "bert"})

	u.evict(anna.Key, false)
	time.Sleep(soon) // a refused confirmation does nothing that could be awaited
	require.True(t, exists(t, client, anna.Key))
	_, acted := l.find(0, isAction)
	require.False(t, acted)

	since := l.seq()
	u.evict(anna.Key, true)
	e := l.acted(since, "evict")
	require.Equal(t, []any{election, anna.Key, anna.Create}, []any{e.Action.Election, e.Action.Key, e.Action.Token})
	l.eventually("it is evicted", func() bool { return !exists(t, client, anna.Key) })
	require.True(t, exists(t, client, bert.Key))
	u.queueShows([]place{bert}, []string{"bert"})
}

// hostile is markup that would run a script, in as many contexts as a text may be put into.
const hostile = `"'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>${window.hacked=1}`

// requireText checks that markup was shown as text, and that no part of it has become an element.
func requireText(b *tab, part string) {
	b.t.Helper()
	b.until("it shows the markup as text", "document.body.innerText.includes("+js(part)+")")
	require.False(b.t, eval[bool](b, `"hacked" in window`))
	require.Zero(b.t, eval[int](b, `document.querySelectorAll('img[src="x"], script:not([src])').length`))
}

// Names and values that come from etcd are text, never markup.
func testMarkupOfACluster(t *testing.T, browser *chromium, cluster *etcdtest.Cluster, client *clientv3.Client) {
	const election = `<img src=x onerror="window.hacked=1">`
	register(t, client, election, hostile)
	_, err := client.Put(etcdtest.Context(t), fmt.Sprintf("%s/%s", election, `<img src=x onerror=window.hacked=1>`), hostile)
	require.NoError(t, err)
	l := open(t, browser, endpoints(cluster)...)
	u := l.visit()
	u.chooseElection(election)
	requireText(u.tab, `<img src=x onerror="window.hacked=1">`)
	requireText(u.tab, `"'><img src=x`)
}
