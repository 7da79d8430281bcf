package memberproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// child is an etcd of another version: a process that this one has started, with the same
// configuration file.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
	err  error         // of Wait; valid once done is closed

	client    http.Client
	peer, url string // where it listens for its peers, and for its clients
	advertise string // the address that its peers use
	id        uint64 // valid once Ready has returned nil
}

// pollEvery is the time between two checks whether a child is ready.
const pollEvery = 5 * time.Millisecond

// startChild starts the etcd at path with the configuration in file and returns without waiting for
// it to join. The kernel kills it when this process ends, in whatever way.
func startChild(path, file string, cfg *embed.Config) (*child, error) {
	attr, err := childAttr()
	if err != nil {
		return nil, err
	}
	c := &child{
		cmd:       exec.Command(path, "--config-file", file),
		done:      make(chan struct{}),
		client:    http.Client{Transport: &http.Transport{}, Timeout: time.Second}, // without a proxy
		peer:      cfg.ListenPeerUrls[0].String(),
		url:       cfg.ListenClientUrls[0].String(),
		advertise: cfg.AdvertisePeerUrls[0].String(),
	}
	c.cmd.Stdout, c.cmd.Stderr = os.Stderr, os.Stderr // stdout is for the parent's lines
	c.cmd.SysProcAttr = attr
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that forked it ends. Therefore this goroutine
		// keeps the thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("member %s: %w", cfg.Name, err)
	}
	return c, nil
}

// Ready blocks until the member answers a read that needs the majority and is published with its client
// URL, or until ctx ends or the process does. Both questions are HTTP requests that all versions answer
// without a token. Their order matters: while a member catches up, its member list is an old one, which
// may have another member with its address.
func (c *child) Ready(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !c.healthy(ctx) || !c.published(ctx) {
		select {
		case <-c.done:
			return fmt.Errorf("etcd stopped while it was starting: %w", c.err)
		case <-ctx.Done():
			return fmt.Errorf("the member is not ready: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// published reports whether the member list of this member contains the member itself with its
// client URL, and keeps its ID.
func (c *child) published(ctx context.Context) bool {
	var members []struct {
		ID         uint64   `json:"id"`
		PeerURLs   []string `json:"peerURLs"`
		ClientURLs []string `json:"clientURLs"`
	}
	if c.get(ctx, c.peer+"/members", &members) != nil {
		return false
	}
	for _, m := range members {
		if slices.Contains(m.PeerURLs, c.advertise) && len(m.ClientURLs) > 0 {
			c.id = m.ID
			return true
		}
	}
	return false
}

// healthy reports whether the member has a leader and answers a linearizable read. A full store is
// healthy: it is what some tests restart.
func (c *child) healthy(ctx context.Context) bool {
	var health struct {
		Health string `json:"health"`
	}
	return c.get(ctx, c.url+"/health?exclude=NOSPACE", &health) == nil && health.Health == "true"
}

func (c *child) get(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(bufio.NewReader(io.LimitReader(resp.Body, 1<<20))).Decode(v)
}

// ID is the member's ID in the cluster, in hex.
func (c *child) ID() string { return fmt.Sprintf("%x", c.id) }

// Done is closed when the process has ended.
func (c *child) Done() <-chan struct{} { return c.done }

// Stop kills the process and waits for it.
func (c *child) Stop() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}
