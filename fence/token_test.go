package fence_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/keys"
)

func TestTokensAreWrittenAndRead(t *testing.T) {
	for _, tc := range []struct {
		election string
		token    eldest.Token
		value    string
	}{
		{"billing", 17, "billing=17"},
		{"nightly jobs", 1, "nightly%20jobs=1"},
		{"a=b", 2, "a%3Db=2"},
		{"a,b;c", 2, "a%2Cb%3Bc=2"},
		{"100%", 3, "100%25=3"},
		{"-._~", 4, "-._~=4"},
		{"\x00\xff\n", 5, "%00%FF%0A=5"},
		{"été", 6, "%C3%A9t%C3%A9=6"},
		{strings.Repeat("\xff", keys.MaxName), math.MaxInt64, strings.Repeat("%FF", keys.MaxName) + "=9223372036854775807"},
	} {
		value, err := fence.Format(tc.election, tc.token)
		require.NoError(t, err)
		require.Equal(t, tc.value, value)
		election, token, err := fence.Parse(value)
		require.NoError(t, err)
		require.Equal(t, tc.election, election)
		require.Equal(t, tc.token, token)
	}
}

// invalid are values that Parse refuses, by the reason.
var invalid = map[string]string{
	"nothing":                        "",
	"no election":                    "=17",
	"no token":                       "billing=",
	"no equals sign":                 "billing",
	"only a number":                  "17",
	"a word for a token":             "billing=new",
	"token 0":                        "billing=0",
	"a negative token":               "billing=-1",
	"a token with a sign":            "billing=+17",
	"a token with a leading zero":    "billing=017",
	"a token in hex":                 "billing=0x11",
	"a token with an underscore":     "billing=1_7",
	"more than 64 bits":              "billing=9223372036854775808",
	"a fraction":                     "billing=17.0",
	"a space before":                 " billing=17",
	"a space after":                  "billing=17 ",
	"a space inside":                 "nightly jobs=17",
	"a plus for a space":             "nightly+jobs=17",
	"two tokens in one header":       "billing=17, billing=18",
	"two equals signs":               "a=b=17",
	"a name with a slash":            "orders%2Feu=17",
	"a bare slash":                   "orders/eu=17",
	"an escape in lower case":        "a%3db=17",
	"an escape that is not needed":   "%62illing=17",
	"half an escape":                 "billing%2=17",
	"no escape":                      "billing%zz=17",
	"an escape with a sign":          "billing%+2=17",
	"a control character":            "bil\x1b[31mling=17",
	"full-width digits":              "billing=１７",
	"a name of 1,025 bytes":          strings.Repeat("a", keys.MaxName+1) + "=17",
	"longer than any name":           strings.Repeat("%41", keys.MaxName+7) + "=17",
	"a megabyte":                     strings.Repeat("9", 1<<20),
	"a structure of another's":       `billing;token=17`,
	"quotes":                         `"billing"=17`,
	"an older token spelled as list": "billing=17,billing=16",
}

func TestInvalidTokensAreRefused(t *testing.T) {
	for name, value := range invalid {
		t.Run(name, func(t *testing.T) {
			election, token, err := fence.Parse(value)
			requireInvalid(t, err, "parse token")
			require.Empty(t, election)
			require.Zero(t, token)
		})
	}
}

// Arguments that tests/badinput does not try.
func TestInvalidArguments(t *testing.T) {
	f := newFence(t)
	store := &fence.Memory{}
	var nobody *tenure
	admit := func(election string, token eldest.Token) error { return f.Admit(t.Context(), election, token) }
	for name, tc := range map[string]struct {
		op  string
		try func() error
	}{
		"Format: a negative token": {"format token", func() error { _, err := fence.Format("a", -1); return err }},
		"New: a nil store": {"new fence", func() error {
			_, err := fence.New(fence.Config{Elections: []string{"a"}, Store: (*fence.Memory)(nil)})
			return err
		}},
		"Admit: no name":              {"admit", func() error { return admit("", 1) }},
		"Admit: token 0":              {"admit", func() error { return admit("billing", 0) }},
		"Advance: no name":            {"advance", func() error { _, err := store.Advance(t.Context(), "", 1); return err }},
		"Transport: a nil tenure":     {"fenced request", func() error { return trip(t, fence.Transport{Tenure: nobody}) }},
		"Transport: a tenure of none": {"format token", func() error { return trip(t, fence.Transport{Tenure: &tenure{token: 1}}) }},
		"Conn: a nil tenure, a stream": {"fenced request", func() error {
			_, err := fence.Conn(nil, nobody).NewStream(t.Context(), streams[feed], feed)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) { requireInvalid(t, tc.try(), tc.op) })
	}
	_, err := store.Advance(t.Context(), "billing", 3)
	require.NoError(t, err, "it is of use as before")
	require.NoError(t, admit("billing", 3))
}

// trip makes a request that must not be sent.
func trip(t *testing.T, transport fence.Transport) error {
	transport.Base = roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("it was sent")
		return nil, errors.ErrUnsupported
	})
	body := &closed{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/", body)
	require.NoError(t, err)
	_, err = transport.RoundTrip(r) //nolint:bodyclose // there is none
	require.True(t, body.closed, "a RoundTripper closes the body")
	return err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closed is a body that is never read.
type closed struct{ closed bool }

func (c *closed) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (c *closed) Close() error             { c.closed = true; return nil }

// requireInvalid requires that an error is that of bad input, names the operation, and can be
// printed on a terminal.
func requireInvalid(t *testing.T, err error, op string) {
	t.Helper()
	require.ErrorIs(t, err, eldest.ErrInvalid)
	var e *eldest.OpError
	require.ErrorAs(t, err, &e)
	require.Equal(t, op, e.Op)
	require.NotRegexp(t, `[\x00-\x1f\x7f]`, err.Error())
	require.Less(t, len(err.Error()), 2000)
	require.Equal(t, 1, strings.Count(err.Error(), eldest.ErrInvalid.Error()), err.Error())
}
