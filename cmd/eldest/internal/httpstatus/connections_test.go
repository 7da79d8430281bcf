package httpstatus_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
)

// crowd is how many connections clients hold in these tests: those that are open at a time, and so
// many more that a probe queued behind them would wait longer than its client does.
const crowd = 8 * httpstatus.Limit

const (
	header = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	probe  = header + "\r\n"
)

// counted is a listener that counts the connections that are open.
type counted struct {
	net.Listener
	mu        sync.Mutex
	open, top int
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetWriteBuffer(4 << 10) // an answer that is not read does not fit
	l.add(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { l.add(-1) })}, nil
}

func (l *counted) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
	l.top = max(l.top, l.open)
}

// most returns the largest number that were open at a time.
func (l *counted) most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.top
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// serveCounted serves a status whose connections are counted.
func serveCounted(t *testing.T) (*shown, *counted) {
	t.Helper()
	l, err := httpstatus.Listen("0")
	require.NoError(t, err)
	open := &counted{Listener: l}
	return serveOn(t, open, time.Minute), open
}

// hold opens a connection, sends the text and does nothing more. Its buffer is too small for long
// answers.
func (s *shown) hold(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.at)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(conn, text)
	require.NoError(s.t, err)
	return conn
}

// answered returns the code of the answer on a connection, or an error if it ends or takes
// too long.
func answered(conn net.Conn) (int, error) {
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// Row 57. Clients hold connections, and go on doing so: without a request, with a request that never
// becomes complete, after one, or with one whose answer cannot be written to its end. A liveness
// probe is answered, and no more files are open than allowed.
//
// Fails when new connections wait for a free place, and when no connection is closed for them.
func TestRow57HeldConnectionsDoNotBlockAProbe(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		answered bool // the holder waits for an answer, and for nothing after it
	}{
		"nothing is sent":          {"", false},
		"half a header":            {header + "X-", false},
		"idle after an answer":     {probe, true},
		"half of the next header":  {probe + "GET /", true},
		"active, half a body":      {header + "Content-Length: 10\r\n\r\n1", false},
		"active, an awaited body":  {header + "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n", false},
		"active, not read":         {strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 50), false},
		"one byte of a bad method": {"\x16", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, open := serveCounted(t)
			for range crowd {
				conn := s.hold(c.text)
				if c.answered {
					code, err := answered(conn)
					require.NoError(t, err, "a holder is not answered")
					require.Equal(t, http.StatusOK, code)
				}
			}
			for range 3 {
				code, err := answered(s.hold(probe))
				require.NoError(t, err, "the probe is not answered")
				require.Equal(t, http.StatusOK, code)
			}
			require.LessOrEqual(t, open.most(), httpstatus.Limit+1, "more connections are open than there may be")
			require.Eventually(t, func() bool { // so many requests for /metrics may be carried out, and no more
				code, _, text := s.ask(http.MethodGet, "/metrics")
				return code == http.StatusOK && strings.Contains(text, "eldest_")
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
}

// Row 57. Requests are not aborted for new connections while no more than half of the connections
// have one, however long they take.
//
// Fails when the oldest connection is closed, whatever it is used for.
func TestRow57RequestsAreNotCutForIdleConnections(t *testing.T) {
	s, open := serveCounted(t)
	begun, release := make(chan struct{}), make(chan struct{})
	s.Node(fixed{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}))
	var active []net.Conn
	for range httpstatus.Limit / 4 {
		active = append(active, s.hold("GET /leader HTTP/1.1\r\nHost: x\r\n\r\n"))
		<-begun
	}
	for i := range crowd {
		s.hold([]string{"", "GET /"}[i%2])
		_, err := answered(s.hold(probe)) // and is idle from then on
		require.NoError(t, err, "the probe is not answered")
	}
	close(release)
	for i, conn := range active {
		code, err := answered(conn)
		require.NoError(t, err, "request %d is cut", i)
		require.Equal(t, http.StatusOK, code)
	}
	require.LessOrEqual(t, open.most(), httpstatus.Limit+1, "more connections are open than there may be")
}

// Row 57. A new connection waits until the one that is closed for it has existed for Moment, and no
// longer.
//
// Fails when new connections do not wait.
func TestRow57ConnectionsHaveAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		track := httpstatus.Track()
		accept := func() (client net.Conn, waited time.Duration) {
			client, server := net.Pipe()
			begun := time.Now()
			track(server, http.StateNew)
			return client, time.Since(begun)
		}
		first, waited := accept()
		require.Zero(t, waited)
		time.Sleep(httpstatus.Moment / 5)
		for range httpstatus.Limit - 1 {
			_, waited = accept()
			require.Zero(t, waited)
		}
		_, waited = accept()
		require.Equal(t, httpstatus.Moment*4/5, waited, "a connection was closed as soon as it was there")
		_, err := first.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the first one is open")
		_, waited = accept() // and one of the others is closed
		require.Equal(t, httpstatus.Moment/5, waited)
		time.Sleep(httpstatus.Moment)
		_, waited = accept()
		require.Zero(t, waited)
	})
}
