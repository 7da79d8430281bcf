package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/curator/internal/routing"
)

// errWaitLimit ends an attempt to connect.
var errWaitLimit = errors.New("no connection in time")

// forward sends the request to the leader and passes on its answer. The error is errNotBegun if the
// request has certainly not left this node, and w is then unchanged; otherwise there is an answer.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, p *peer, until time.Time, connected func()) error {
	end, err := f.begin(w, p.Calls)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	detach := context.AfterFunc(p.Context(), func() { cancel(p.Cause()) })
	defer detach()

	// It is certain that nothing was sent only if the transport has asked for a connection and got
	// none, or was not asked to send.
	var asked, got atomic.Bool
	patience := time.AfterFunc(routing.Patience(until), func() {
		if !got.Load() {
			cancel(errWaitLimit)
		}
	})
	defer patience.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true); connected() },
	})
	body := &inbound{ReadCloser: r.Body}
	out := r.WithContext(ctx)
	out.Body = body

	var failed error
	ahead := false // the answer came before the end of the body
	proxy := &httputil.ReverseProxy{
		Rewrite: func(to *httputil.ProxyRequest) { f.rewrite(to, p) },
		Transport: sender(func(out *http.Request) (*http.Response, error) {
			if ctx.Err() != nil {
				asked.Store(true) // as if it had got none
				return nil, context.Cause(ctx)
			}
			return f.transport.RoundTrip(out)
		}),
		FlushInterval: -1, // as the leader does
		ErrorLog:      f.proxyLog,
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode != http.StatusSwitchingProtocols && !body.ended.Load() {
				ahead = true
				early(w, r)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, out)
	switch {
	case failed == nil:
		if ahead {
			linger(w, r)
		}
		return nil
	case asked.Load() && !got.Load():
		return fmt.Errorf("%w: leader %+q could not be reached: %w", errNotBegun, p.leader.NodeID, failed)
	}
	f.cfg.Logger.Debug("request aborted", "election", f.cfg.Election, "leader", p.leader.NodeID, "token", int64(p.leader.Token), "error", failed)
	early(w, r)
	f.refuse(w, http.StatusBadGateway, false, fmt.Errorf("leader %+q did not answer: %w", p.leader.NodeID, failed))
	linger(w, r)
	return nil
}

// sender is a function as an http.RoundTripper.
type sender func(*http.Request) (*http.Response, error)

// RoundTrip sends; see http.RoundTripper.
func (s sender) RoundTrip(out *http.Request) (*http.Response, error) { return s(out) }

// inbound is a caller's body. It records that its end was read.
type inbound struct {
	io.ReadCloser
	ended atomic.Bool
}

// Read reads; see io.Reader.
func (b *inbound) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// rewrite makes the request to the leader from the caller's request: the same, and the hop.
func (f *Front) rewrite(to *httputil.ProxyRequest, p *peer) {
	in, out := to.In, to.Out
	to.SetURL(p.url)
	out.Host = in.Host
	if p.url.RawQuery == "" {
		out.URL.RawQuery = in.URL.RawQuery // as it was sent; the proxy has removed what it cannot parse
	}
	for _, key := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := in.Header[key]; ok {
			out.Header[key] = values
		}
	}
	if ip, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
		out.Header.Set("X-Forwarded-For", strings.Join(append(slices.Clone(in.Header["X-Forwarded-For"]), ip), ", "))
	}
	if _, ok := out.Header["X-Forwarded-Host"]; !ok {
		out.Header.Set("X-Forwarded-Host", in.Host)
	}
	if _, ok := out.Header["X-Forwarded-Proto"]; !ok {
		out.Header.Set("X-Forwarded-Proto", map[bool]string{false: "http", true: "https"}[in.TLS != nil])
	}
	hop{token: p.leader.Token, from: f.cfg.NodeID}.put(out.Header)
	out.Trailer = in.Trailer // its values come with the end of the body
	once(out)
}

// once makes a request that http.Transport sends once. After a reused connection has broken,
// http.Transport sends a GET, HEAD, OPTIONS or TRACE, or a request with an Idempotency-Key, again
// if it has no body or a body that can be made again, although the leader may have carried it out.
// It never sends again a body that was read, so a request without a body gets an empty one; with
// this encoding HTTP/1 announces none.
func once(out *http.Request) {
	out.GetBody = nil
	if out.Body == nil || out.Body == http.NoBody {
		out.Body, out.TransferEncoding = empty{}, []string{"identity"}
	}
}

// empty is a body of no bytes that is not http.NoBody.
type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, io.EOF }
func (empty) Close() error             { return nil }
