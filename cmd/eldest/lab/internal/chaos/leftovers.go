package chaos

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// leftovers lists what is in etcd after everybody has left: leases, candidates' keys,
// watches. Of those that were killed, leases may live on for their TTL, or a little longer
// where etcd's leader changed. It ends the record of the truth, whose watches must not
// count.
func (s *stage) leftovers(ctx context.Context) ([]string, error) {
	due := time.Now().Add(s.cfg.Recovery())
	left, err := s.until(ctx, due, s.leasesAndKeys)
	if err != nil {
		return nil, err
	}
	if err := s.recorded(ctx); err != nil {
		return nil, err
	}
	watches, err := s.until(ctx, time.Now().Add(s.cfg.Recovery()), s.watches)
	return append(left, watches...), err
}

// recorded blocks until all that etcd has committed so far is recorded, and ends the record.
func (s *stage) recorded(ctx context.Context) error {
	rev, err := s.field.Revision(ctx)
	if err != nil {
		return err
	}
	if err := s.truth.Reached(ctx, rev); err != nil {
		return err
	}
	s.stopTruth()
	return nil
}

// until asks until nothing is left, or it is due.
func (s *stage) until(ctx context.Context, due time.Time, ask func(context.Context) ([]string, error)) ([]string, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		left, err := ask(bounded)
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil && len(left) == 0 || time.Now().After(due) {
			return left, err
		}
		wait(ctx, 50*time.Millisecond)
	}
}

func (s *stage) leasesAndKeys(ctx context.Context) ([]string, error) {
	var left []string
	leases, err := s.field.All.Leases(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range leases.Leases {
		left = append(left, fmt.Sprintf("lease %x", int64(l.ID)))
	}
	resp, err := s.field.All.Get(ctx, keys.Prefix(electionName), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range resp.Kvs {
		left = append(left, "key "+string(kv.Key))
	}
	return left, nil
}

// watcherGauge is how many watches a member serves, in its metrics.
const watcherGauge = "etcd_debugging_mvcc_watcher_total "

func (s *stage) watches(ctx context.Context) ([]string, error) {
	var left []string
	for i, endpoint := range s.field.Endpoints() {
		count, err := gauge(ctx, endpoint+"/metrics", watcherGauge)
		if err != nil {
			return nil, err
		}
		if count != "0" {
			left = append(left, fmt.Sprintf("%s watches at member %d", count, i))
		}
	}
	return left, nil
}

// gauge reads one value of a page of metrics.
func gauge(ctx context.Context, url, name string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := metricsClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s has no %s", url, name)
}

// metricsClient keeps no connection: its cluster is about to end.
var metricsClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
