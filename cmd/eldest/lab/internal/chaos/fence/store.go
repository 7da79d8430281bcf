package fence

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	tokens "github.com/eldest-io/eldest/fence"
)

// Store is a store that serves, and who refuses.
type Store struct {
	// Address is where a Client finds it.
	Address string

	server  http.Server
	serving sync.WaitGroup

	mu      sync.Mutex // orders history as newest
	history *oracle.Recorder
	newest  tokens.Memory
	err     error
}

// election is what the store has its one newest token under, whatever the run calls it.
const election = "chaos"

// Open has a store serve on a free port of 127.0.0.1 and write what it decides into the
// history. The caller must Close it.
func Open(history *oracle.Recorder) (*Store, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Store{Address: lis.Addr().String(), history: history}
	s.server.Handler = http.HandlerFunc(s.serve)
	s.serving.Go(func() { _ = s.server.Serve(lis) }) // until Close
	return s, nil
}

// Close waits for what is under way. An error means that the history may not be whole.
// Closing twice does no harm.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.server.Shutdown(ctx)
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.err)
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	token, err := strconv.ParseInt(r.FormValue("token"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch accepted, err := s.offer(r.FormValue("who"), token); {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !accepted:
		w.WriteHeader(http.StatusConflict)
	}
}

// offer decides, and writes the decision into the history before anybody hears of it.
func (s *Store) offer(who string, token int64) (accepted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.err = errors.Join(s.err, err) }()
	newest, err := s.newest.Advance(context.Background(), election, eldest.Token(token))
	if err != nil {
		return false, err
	}
	e := oracle.Event{Kind: oracle.FenceRefused, Who: who, Token: token}
	if accepted = newest == eldest.Token(token); accepted {
		e.Kind = oracle.FenceAccepted
	}
	return accepted, s.history.Add(e)
}
