package fence_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/keys"
)

// FuzzParse: a value is read as a token that Format writes in the same way, or it is refused with
// an error that can be printed. A fence treats the same header as a token of its own election, of
// another one, or as none.
func FuzzParse(f *testing.F) {
	for _, value := range invalid {
		if len(value) < 100 {
			f.Add(value)
		}
	}
	for _, value := range []string{
		"billing=17", "nightly%20jobs=1", "a%3Db=2", "%00%FF%0A=5", "orders=9223372036854775807", "billing=1",
		strings.Repeat("%FF", 40) + "=3",
	} {
		f.Add(value)
	}
	fenced, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: &fence.Memory{}})
	require.NoError(f, err)
	reached := false
	handler := fenced.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))

	f.Fuzz(func(t *testing.T, value string) {
		election, token, err := fence.Parse(value)
		if err != nil {
			requireInvalid(t, err, "parse token")
			require.Empty(t, election)
			require.Zero(t, token)
		} else {
			require.NoError(t, keys.Check(election))
			require.Positive(t, token)
			again, err := fence.Format(election, token)
			require.NoError(t, err)
			require.Equal(t, value, again, "one token, two spellings")
		}

		// Every valid name can be written and read.
		if keys.Check(value) == nil {
			written, err := fence.Format(value, 7)
			require.NoError(t, err)
			name, seven, err := fence.Parse(written)
			require.NoError(t, err)
			require.Equal(t, value, name)
			require.Equal(t, eldest.Token(7), seven)
		}

		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header[fence.Header] = []string{value}
		w := httptest.NewRecorder()
		reached = false
		handler.ServeHTTP(w, r)
		require.Equal(t, w.Code == http.StatusOK, reached)
		require.True(t, utf8.Valid(w.Body.Bytes()))
		switch {
		case err != nil || election != "billing":
			require.Equal(t, http.StatusBadRequest, w.Code)
		case w.Code != http.StatusOK:
			require.Equal(t, http.StatusPreconditionFailed, w.Code)
			refused := fence.Refused(w.Result())
			require.ErrorIs(t, refused, eldest.ErrNotLeading)
		}
	})
}
