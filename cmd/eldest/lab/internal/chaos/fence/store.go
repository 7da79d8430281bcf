package fence

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	tokens "github.com/eldest-io/eldest/fence"
)

// Ready is the line that a store's process writes when it serves.
type Ready struct {
	Address string `json:"address"`
}

// store is the state, and who refuses.
type store struct {
	mu      sync.Mutex // orders history as newest
	history *oracle.Recorder
	newest  tokens.Memory
}

// election is what the store has its one newest token under, whatever the run calls it.
const election = "chaos"

// Run is all that a store's process does: it serves on a free port of 127.0.0.1, says on
// out where, and appends what it decides to the file, at the instants of clock, until in ends. An error means that
// its history may not be whole.
func Run(file string, clock instant.Clock, in io.Reader, out io.Writer) error {
	history, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = history.Close() }() // each line is written at once
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	broken := make(chan error, 1)
	s := &store{history: oracle.NewRecorder(history, clock.Now)}
	go s.accept(lis, broken)
	if err := json.NewEncoder(out).Encode(Ready{lis.Addr().String()}); err != nil {
		return errors.Join(err, lis.Close())
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	select {
	case <-ended:
		return lis.Close() // the connections end with the process
	case err := <-broken:
		return errors.Join(err, lis.Close())
	}
}

func (s *store) accept(lis net.Listener, broken chan<- error) {
	for {
		conn, err := lis.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client gave up before
		}
		go func() {
			defer func() { _ = conn.Close() }() // whoever hears nothing knows nothing
			if err := s.serve(conn); err != nil {
				select {
				case broken <- err:
				default: // one is enough
				}
			}
		}()
	}
}

// serve answers one client. The error is the store's own; clients come and go.
func (s *store) serve(conn net.Conn) error {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		number, who, _ := strings.Cut(lines.Text(), " ")
		token, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("fence: %q: %w", lines.Text(), err)
		}
		accepted, err := s.offer(who, token)
		if err != nil {
			return err
		}
		answer := "old"
		if accepted {
			answer = "ok"
		}
		if _, err := io.WriteString(conn, answer+"\n"); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
	}
	return nil
}

// offer decides, and writes the decision into the history before anybody hears of it.
func (s *store) offer(who string, token int64) (accepted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
