package oracle

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stored history can be loaded unchanged, with every kind of event; it is also kept for people.
func TestStoreAndLoad(t *testing.T) {
	h, err := write([]string{"put a", "a joined", "a won", "a sent w", "write a w did=x holder=e/a", "del a", "set recovery=60000 looks=3"})
	require.NoError(t, err)
	for kind := range kinds {
		h.Events = append(h.Events, Event{
			Seq: len(h.Events) + 1, At: time.Second, Kind: kind, Who: "a", Token: 1, Key: "k", Lease: 2, Write: "w", Proof: 3, Until: 4,
			Clear: true, Lost: true, Keys: []string{"e/1", "e/2"}, Text: "t\n\"",
		})
	}
	dir := t.TempDir()
	require.NoError(t, h.Keep(dir, "what was found"))
	stored, err := os.ReadFile(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	require.Equal(t, len(h.Events)+len(h.Changes)+1, bytes.Count(stored, []byte("\n")), "a line for each")
	got, err := Load(bytes.NewReader(stored))
	require.NoError(t, err)
	require.Equal(t, h, got)
	said, err := os.ReadFile(filepath.Join(dir, "history.txt"))
	require.NoError(t, err)
	require.Contains(t, string(said), "     0.003s a      won token=2 key=e/a rev=2\n     0.006s store  rev=4 key=e/a deleted=true create=2\n")
	require.NotContains(t, string(said), "sent", "what is quiet")
	require.True(t, strings.HasSuffix(string(said), "\nwhat was found"))
	require.FileExists(t, filepath.Join(dir, "register.html"))
	require.ErrorIs(t, h.Keep(filepath.Join(dir, "absent"), ""), os.ErrNotExist)
}

// Processes write files of their own; together they are one history, in the order of instants and,
// within an instant, of each file.
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

// The incomplete last line of a file whose writer was killed is ignored; nothing else is.
func TestMalformed(t *testing.T) {
	const about = `{"about":{"prefix":"e/","data":"d","ttl":1}}` + "\n"
	const event = `{"event":{"at":1,"kind":"won"}}`
	h, err := Load(strings.NewReader(about+event+"\n"+event[:20]), strings.NewReader(event[:1]))
	require.NoError(t, err)
	require.Len(t, h.Events, 1)
	for name, file := range map[string]string{
		"no about":           event + "\n",
		"two abouts":         about + about,
		"not JSON":           about + "nonsense\n",
		"an empty line":      about + "\n",
		"nothing in it":      about + "{}\n",
		"two in one":         about + `{"event":{"at":1,"kind":"won"},"change":{"rev":1,"at":1,"key":"k","create":1}}` + "\n",
		"two on one line":    about + event + event + "\n",
		"a brace too many":   about + event + "}\n",
		"a kind of no sense": about + `{"event":{"at":1,"kind":"one"}}` + "\n",
		"a member unknown":   about + `{"event":{"at":1,"kind":"won","whom":"a"}}` + "\n",
		"before time":        about + `{"event":{"at":-1,"kind":"won"}}` + "\n",
		"torn in the middle": about + event[:20] + "\n" + event + "\n",
	} {
		_, err := Load(strings.NewReader(file))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	for _, value := range []string{"by hand", "5", "5 ", " 5 w"} {
		_, err = ReadValue(value)
		require.ErrorIs(t, err, ErrMalformed, value)
	}
	name, err := ReadValue(WriteValue(5, "of two words"))
	require.NoError(t, err)
	require.Equal(t, "of two words", name)
	_, err = Load(io.MultiReader(strings.NewReader(about), broken{}))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.ErrorIs(t, NewRecorder(io.Discard, nil).Add(Event{Kind: "one"}), ErrMalformed)
	require.ErrorIs(t, NewRecorder(broken{}, nil).Add(Event{Kind: Won}), io.ErrClosedPipe)
	require.ErrorIs(t, h.Store(broken{}), io.ErrClosedPipe)
}

type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Dead participants report nothing, and the log sets order and instants.
func TestLog(t *testing.T) {
	now, rev := time.Second, int64(5)
	l := NewLog(func() time.Duration { return now }, func() int64 { return rev })
	require.True(t, l.Add(Event{Who: "a", Kind: Won, Token: 2}))
	now, rev = 2*time.Second, 6
	require.True(t, l.Add(Event{Who: "a", Kind: Crashed}))
	require.True(t, l.Dead("a"))
	require.False(t, l.Add(Event{Who: "a", Kind: Ended, Token: 2}), "a dead participant reported something")
	require.True(t, l.Add(Event{Kind: Quiet}))
	require.True(t, l.Add(Event{Kind: Read, At: time.Second, Until: now}))
	require.Equal(t, []Event{
		{Seq: 1, At: time.Second, Rev: 5, Who: "a", Kind: Won, Token: 2},
		{Seq: 2, At: 2 * time.Second, Rev: 6, Who: "a", Kind: Crashed},
		{Seq: 3, At: 2 * time.Second, Rev: 6, Kind: Quiet},
		{Seq: 4, At: time.Second, Until: 2 * time.Second, Rev: 6, Kind: Read},
	}, l.Events())
}
