package raftpeer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// The requests at control addresses. Voters answer the first two if they lead, the extra voter's process the
// others.
const (
	addPath    = "/add"    // adds a voter: parameters id and address
	logPath    = "/log"    // all entries
	openPath   = "/open"   // opens the extra voter of a group: parameter election
	leaderPath = "/leader" // the ID of the leader of a group: parameter election
	knownPath  = "/known"  // fails until the extra voter's configuration has a voter: parameters election and id
	writesPath = "/writes" // the last indexes of all groups
)

// control serves a control address.
type control struct {
	listener net.Listener
	server   http.Server
	serving  sync.WaitGroup
}

// serve serves at an address of a network until close.
func serve(network peer.Network, handler http.Handler) (*control, error) {
	l, err := network.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &control{listener: l, server: http.Server{Handler: handler, ReadHeaderTimeout: rpcTimeout}}
	c.serving.Go(func() { _ = c.server.Serve(l) }) // it ends by close
	return c, nil
}

func (c *control) address() string { return c.listener.Addr().String() }

// close ends the service. Requests that are being answered have a second.
func (c *control) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	c.serving.Wait()
	return err
}

// answer writes the result of a request as JSON, or an error.
func answer(w http.ResponseWriter, result any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(result) // the client notices
}

// handle serves the requests that a voter answers.
func (v *voter) handle(mux *http.ServeMux) {
	mux.HandleFunc(addPath, func(w http.ResponseWriter, r *http.Request) {
		id, address := raft.ServerID(r.FormValue("id")), raft.ServerAddress(r.FormValue("address"))
		answer(w, nil, v.await(r.Context(), v.AddVoter(id, address, 0, enqueueing)))
	})
	mux.HandleFunc(logPath, func(w http.ResponseWriter, r *http.Request) {
		log, err := v.committed(r.Context())
		answer(w, log, err)
	})
}

// caller sends requests to control addresses, each on a connection of its own: none is left at rest.
type caller struct{ http http.Client }

func newCaller(network peer.Network) caller {
	return caller{http.Client{Transport: &http.Transport{DialContext: network.Dial, DisableKeepAlives: true}}}
}

// call sends a request and decodes its result.
func (c caller) call(ctx context.Context, control, path string, parameters url.Values, result any) (err error) {
	target := url.URL{Scheme: "http", Host: control, Path: path, RawQuery: parameters.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // the status is the error
		return fmt.Errorf("%s: %s", response.Status, reason)
	}
	return json.NewDecoder(response.Body).Decode(result)
}
