package fence

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOlderTokensAreRefused(t *testing.T) {
	var file bytes.Buffer
	history := oracle.NewRecorder(&file, nil)
	require.NoError(t, history.About(oracle.About{}))
	store, err := Open(history)
	require.NoError(t, err)
	a, b := Dial(store.Address), Dial(store.Address)
	offer := func(c *Client, who string, token int64, want bool) {
		t.Helper()
		got, err := c.Write(who, token)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	offer(a, "a", 5, true)
	offer(b, "b", 7, true)
	offer(a, "a", 5, false)
	a.Close() // and comes back
	offer(a, "a", 6, false)
	offer(b, "b", 7, true)
	a.Close()
	b.Close()

	require.NoError(t, store.Close())
	h, err := oracle.Load(&file)
	require.NoError(t, err)
	var told []string
	for _, e := range h.Events {
		told = append(told, e.Who+" "+string(e.Kind))
	}
	yes, no := string(oracle.FenceAccepted), string(oracle.FenceRefused)
	require.Equal(t, []string{"a " + yes, "b " + yes, "a " + no, "a " + no, "b " + yes}, told)

	_, err = a.Write("a", 9)
	require.Error(t, err, "nobody is there any more")
}

// A store whose history cannot be written accepts nothing, and says so in the end.
func TestHistoryThatCannotBeWritten(t *testing.T) {
	store, err := Open(oracle.NewRecorder(full{}, nil))
	require.NoError(t, err)
	c := Dial(store.Address)
	_, err = c.Write("a", 5)
	require.Error(t, err)
	c.Close()
	require.ErrorContains(t, store.Close(), "no space")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
