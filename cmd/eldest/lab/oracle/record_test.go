package oracle

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is stored is what is loaded, whole histories and every kind of event.
func TestStoreAndLoad(t *testing.T) {
	s := orderly()
	s.TTL, s.Recovery = 2*time.Second, time.Minute
	for kind := range kinds {
		s.at(Event{
			Kind: kind, Who: "a", Token: 1, Key: "k", Lease: 2, Write: "w", Proof: 3, Until: s.now + 4,
			Clear: true, Lost: true, Keys: []string{"e/1", "e/2"}, Text: "t\n\"",
		})
	}
	var b bytes.Buffer
	require.NoError(t, s.Store(&b))
	require.Equal(t, len(s.Events)+len(s.Changes)+1, strings.Count(b.String(), "\n"), "a line for each")
	got, err := Load(&b)
	require.NoError(t, err)
	require.Equal(t, &s.History, got)
}

// Processes write files of their own; together they are one history, in the order
// of instants and, within an instant, of each file.
func TestMerge(t *testing.T) {
	var files [2]bytes.Buffer
	now := 5 * time.Second
	clock := func() time.Duration { return now }
	a, b := NewRecorder(&files[0], clock), NewRecorder(&files[1], clock)
	require.NoError(t, a.About(About{Prefix: "e/"}))
	require.NoError(t, a.Add(Event{Who: "a", Kind: Joined}))
	now = 6 * time.Second
	require.NoError(t, b.Add(Event{Who: "b", Kind: Joined}))
	require.NoError(t, a.Add(Event{Who: "a", Kind: FenceAccepted, Token: 2}))
	require.NoError(t, a.Add(Event{Who: "a", Kind: FenceAccepted, Token: 1}))
	require.NoError(t, b.Add(Event{Who: "b", Kind: Sure, At: time.Second, Until: now}))
	require.NoError(t, b.Change(Change{Rev: 3}))
	require.NoError(t, a.Change(Change{Rev: 2}))
	h, err := Load(&files[1], &files[0])
	require.NoError(t, err)
	require.Equal(t, []Event{
		{Seq: 1, At: time.Second, Who: "b", Kind: Sure, Until: 6 * time.Second},
		{Seq: 2, At: 5 * time.Second, Who: "a", Kind: Joined},
		{Seq: 3, At: 6 * time.Second, Who: "b", Kind: Joined},
		{Seq: 4, At: 6 * time.Second, Who: "a", Kind: FenceAccepted, Token: 2},
		{Seq: 5, At: 6 * time.Second, Who: "a", Kind: FenceAccepted, Token: 1},
	}, h.Events)
	require.Equal(t, []Change{{Rev: 2}, {Rev: 3}}, h.Changes)
	require.Equal(t, "e/", h.Prefix)
}

// The end of a file whose writer was killed is let go; nothing else is.
func TestMalformed(t *testing.T) {
	const about = `{"about":{"prefix":"e/","data":"d","ttl":1}}` + "\n"
	const event = `{"event":{"at":1,"kind":"won"}}`
	load := func(files ...string) (*History, error) {
		var in []io.Reader
		for _, f := range files {
			in = append(in, strings.NewReader(f))
		}
		return Load(in...)
	}
	h, err := load(about+event+"\n"+event[:20], event[:1])
	require.NoError(t, err)
	require.Len(t, h.Events, 1)
	for name, files := range map[string][]string{
		"no about":           {event + "\n"},
		"two abouts":         {about, about},
		"not JSON":           {about + "nonsense\n"},
		"an empty line":      {about + "\n"},
		"nothing in it":      {about + "{}\n"},
		"two in one":         {about + `{"event":{"at":1,"kind":"won"},"change":{"rev":1,"at":1,"key":"k","create":1}}` + "\n"},
		"two on one line":    {about + event + event + "\n"},
		"a kind of no sense": {about + `{"event":{"at":1,"kind":"one"}}` + "\n"},
		"a member unknown":   {about + `{"event":{"at":1,"kind":"won","whom":"a"}}` + "\n"},
		"before time":        {about + `{"event":{"at":-1,"kind":"won"}}` + "\n"},
		"torn in the middle": {about + event[:20] + "\n" + event + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(files...)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
	require.ErrorIs(t, NewRecorder(io.Discard, nil).Add(Event{Kind: "one"}), ErrMalformed)
	_, err = Load(io.MultiReader(strings.NewReader(about), broken{}))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// A recorder whose file is full says so.
func TestRecorderFails(t *testing.T) {
	require.ErrorIs(t, NewRecorder(broken{}, nil).Add(Event{Kind: Won}), io.ErrClosedPipe)
}

type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
