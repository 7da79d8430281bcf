package badinput

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
)

// won is a tenure without an election.
type won struct {
	election string
	token    eldest.Token
}

func (w won) Election() string    { return w.election }
func (w won) Token() eldest.Token { return w.token }
func (won) Err() error            { return nil }

// fenceSection: tokens on requests to stores outside etcd. The counter counts requests that reached
// a handler behind the fence.
func fenceSection(t *testing.T) section {
	reached := 0
	store := &fence.Memory{}
	f, err := fence.New(fence.Config{Elections: []string{"orders"}, Store: store})
	require.NoError(t, err)
	require.NoError(t, f.Admit(t.Context(), "orders", 7))
	handler := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	unary := f.UnaryServer()

	s := section{
		title: "fence", about: "Tokens on requests to a store outside etcd. A fence for the election `orders`, to which token 7 has come.",
		sent: func() int { return reached }, counted: "handled", left: "token 7 is admitted",
		lives: func(t *testing.T) { require.NoError(t, f.Admit(context.Background(), "orders", 7)) },
	}
	op := func(tried, op, election string, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: election, want: errInvalid, try: try})
	}
	format := func(election string, token eldest.Token) error { return second(fence.Format(election, token)) }
	op("`Format`: an empty name", "format token", "", func() error { return format("", 7) })
	op("`Format`: a nested name", "format token", "orders/eu", func() error { return format("orders/eu", 7) })
	op("`Format`: token 0", "format token", "orders", func() error { return format("orders", 0) })
	op("`New`: no elections", "new fence", "", func() error { return second(fence.New(fence.Config{Store: store})) })
	op("`New`: a nested name", "new fence", "orders/eu", func() error {
		return second(fence.New(fence.Config{Elections: []string{"orders/eu"}, Store: store}))
	})
	op("`New`: no store", "new fence", "", func() error { return second(fence.New(fence.Config{Elections: []string{"orders"}})) })
	op("`Admit`: no context", "admit", "orders", func() error { return f.Admit(absent, "orders", 7) })
	op("`Admit`: token −1", "admit", "orders", func() error { return f.Admit(context.Background(), "orders", -1) })
	op("`Admit`: another election", "admit", "invoices", func() error { return f.Admit(context.Background(), "invoices", 9) })
	op("`Memory.Advance`: token 0", "advance", "orders", func() error { return second(store.Advance(context.Background(), "orders", 0)) })
	trip := func(tenure fence.Tenure) error {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:1/", nil)
		return second(fence.Transport{Tenure: tenure}.RoundTrip(r)) //nolint:bodyclose // there is none
	}
	op("`Transport`: no tenure", "fenced request", "", func() error { return trip(nil) })
	op("`Transport`: a tenure without a token", "format token", "orders", func() error { return trip(won{"orders", 0}) })
	op("`Conn`: no tenure", "fenced request", "", func() error { return fence.Conn(nil, nil).Invoke(context.Background(), "/a/b", nil, nil) })

	values := []struct {
		tried  string
		values []string
		status int
		code   codes.Code
	}{
		{"no token", nil, 428, codes.InvalidArgument},
		{"an empty token", []string{""}, 400, codes.InvalidArgument},
		{"a number alone, `7`", []string{"7"}, 400, codes.InvalidArgument},
		{"`orders=0`", []string{"orders=0"}, 400, codes.InvalidArgument},
		{"`orders=+7`", []string{"orders=+7"}, 400, codes.InvalidArgument},
		{"`orders=9223372036854775808`", []string{"orders=9223372036854775808"}, 400, codes.InvalidArgument},
		{"`orders%2Feu=7`", []string{"orders%2Feu=7"}, 400, codes.InvalidArgument},
		{"`%6Frders=7`", []string{"%6Frders=7"}, 400, codes.InvalidArgument},
		{"two in one header, `orders=7, orders=8`", []string{"orders=7, orders=8"}, 400, codes.InvalidArgument},
		{"two headers", []string{"orders=7", "orders=8"}, 400, codes.InvalidArgument},
		{"control characters", []string{"orders\x1b[31m=7"}, 400, codes.InvalidArgument},
		{"another election's, `invoices=9`", []string{"invoices=9"}, 400, codes.InvalidArgument},
		{"an older one, `orders=6`", []string{"orders=6"}, 412, codes.FailedPrecondition},
	}
	for _, v := range values {
		s.rows = append(s.rows, row{tried: "HTTP: " + v.tried, want: []error{statusError(v.status)}, try: func() error {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header["Eldest-Token"] = v.values
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code == http.StatusOK {
				return nil
			}
			return fmt.Errorf("%w: %s", statusError(w.Code), w.Body.String()[:w.Body.Len()-1]) // without the newline at its end
		}})
	}
	for _, v := range values {
		s.rows = append(s.rows, row{tried: "gRPC: " + v.tried, want: []error{coded(v.code)}, try: func() error {
			md := metadata.MD{"eldest-token": v.values}
			_, err := unary(metadata.NewIncomingContext(context.Background(), md), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
				reached++
				return nil, nil
			})
			return answer(err)
		}})
	}
	return s
}

// statusError is an HTTP status as an error that a row can want.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))) }
