package page

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// message is a message of the stream.
type message struct {
	id     int64
	events []feed.Event
}

// stream opens the stream of events; leave closes it.
func (s *site) stream(query string, change func(*http.Request)) (messages *bufio.Reader, leave func()) {
	s.t.Helper()
	resp := s.send(http.MethodGet, "/events"+query, "", change)
	leave = func() { _ = resp.Body.Close() }
	s.t.Cleanup(leave)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.Equal(s.t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
	return bufio.NewReader(resp.Body), leave
}

// next reads the next message, and skips comments.
func next(t *testing.T, from *bufio.Reader) (m message) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		require.NoError(t, err)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id, err = strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
		case "data":
			require.NoError(t, json.Unmarshal([]byte(value), &m.events))
		case "":
			if m.events != nil {
				return m
			}
		}
	}
}

// until reads messages up to the event with a number, and returns all events.
func until(t *testing.T, from *bufio.Reader, seq int64) (all []feed.Event) {
	t.Helper()
	for {
		m := next(t, from)
		require.LessOrEqual(t, len(m.events), mostEvents)
		require.Equal(t, m.id, m.events[len(m.events)-1].Seq)
		all = append(all, m.events...)
		if m.id >= seq {
			require.Equal(t, seq, m.id)
			return all
		}
	}
}

func problem(text string) feed.Event { return feed.Event{Type: feed.Problem, Error: text} }

func TestStream(t *testing.T) {
	s := serve(t)
	for i := range 3 {
		s.log.Add(problem("old " + strconv.Itoa(i)))
	}
	messages, leave := s.stream("", nil)
	m := next(t, messages)
	require.EqualValues(t, 3, m.id)
	require.Len(t, m.events, 3)
	require.Equal(t, "old 0", m.events[0].Error)

	s.log.Add(problem("<b>\n\ndata: [] \u2028"))
	s.log.Add(problem("last"))
	all := until(t, messages, 5)
	require.Equal(t, "<b>\n\ndata: [] \u2028", all[0].Error, "text cannot end a message")
	leave()

	// More than fits into one message, without a gap.
	for range 2*mostEvents + 7 {
		s.log.Add(problem("many"))
	}
	end := int64(5 + 2*mostEvents + 7)
	messages, _ = s.stream("?after=2", nil)
	all = until(t, messages, end)
	for i, e := range all {
		require.EqualValues(t, 3+i, e.Seq)
	}

	// The number in the header is newer than the one in the address.
	messages, _ = s.stream("?after=2", func(r *http.Request) { r.Header.Set("Last-Event-ID", strconv.FormatInt(end-1, 10)) })
	m = next(t, messages)
	require.Equal(t, end, m.id)
	require.Len(t, m.events, 1)

	// A number that is too large is that of an earlier run of the program.
	messages, _ = s.stream("?after="+strconv.FormatInt(end+100, 10), nil)
	require.EqualValues(t, 1, until(t, messages, end)[0].Seq)

	for _, wrong := range []string{"x", "-1", "1.5", "9999999999999999999"} {
		code, _ := s.get("/events?after=" + wrong)
		require.Equal(t, http.StatusBadRequest, code, wrong)
	}
}

// What comes at nearly the same time is one message.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gathered := feed.NewLog(), make(chan []feed.Event, 1)
		go func() {
			events, _ := gather(t.Context(), log, 0)
			gathered <- events
		}()
		synctest.Wait()
		log.Add(problem("first"))
		time.Sleep(gathering - 1)
		log.Add(problem("last"))
		require.Len(t, <-gathered, 2)
	})
}

// Large events come in several messages, each with one at least.
func TestStreamOfLargeEvents(t *testing.T) {
	s := serve(t)
	for _, bytes := range []int{10, mostBytes / 2, mostBytes / 3, mostBytes / 3, 2 * mostBytes, 10} {
		s.log.Add(problem(strings.Repeat("x", bytes)))
	}
	messages, _ := s.stream("", nil)
	var ends []int64
	for len(ends) == 0 || ends[len(ends)-1] < 6 {
		ends = append(ends, next(t, messages).id)
	}
	require.Equal(t, []int64{3, 4, 5, 6}, ends)

	got, text := s.ask(http.MethodHead, "/events", "", nil)
	require.Equal(t, http.StatusOK, got.code)
	require.Empty(t, text, "HEAD has no stream")
}

// Two pages at a time get the same events.
func TestStreamsConcurrentSafe(t *testing.T) {
	s := serve(t)
	one, _ := s.stream("", nil)
	two, _ := s.stream("", nil)
	var adding sync.WaitGroup
	for range 4 {
		adding.Go(func() {
			for range 500 {
				s.log.Add(problem("x"))
			}
		})
	}
	require.Len(t, until(t, one, 2000), 2000)
	require.Len(t, until(t, two, 2000), 2000)
	adding.Wait()
}
