package memberproc

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eldest-io/eldest/cmd/eldest/internal/gate"
)

// Link is one direction between two members, by name.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Held is how many requests and pieces of streams a cut link has held back since the process started.
type Held struct {
	Link
	Count int64 `json:"count"`
}

// Route is how the fabric reaches one peer.
type Route struct {
	// Name is the peer's member name.
	Name string `json:"name"`
	// Host is the ip:port that members use for the peer, Real the one where it listens.
	Host string `json:"host"`
	Real string `json:"real"`
}

// fabric is the forward proxy through which one member reaches its peers. It carries the requests of
// the member, and the responses to them; requests of the peers pass their own fabrics.
type fabric struct {
	self   string
	routes map[string]Route // by Host
	server *http.Server
	proxy  http.Handler
	real   *http.Transport // sends requests to the peers, and knows no proxy
	// starting is true from the start of a new cluster's member until it serves
	// its peers, see ServeHTTP.
	starting atomic.Bool

	mu    sync.Mutex
	links map[Link]*link
}

// link is a gate, and counts what it has held.
type link struct {
	gate.Gate
	held atomic.Int64
}

// newFabric listens on a free port; the returned address is for HTTP_PROXY.
func newFabric(self string, routes []Route) (*fabric, string, error) {
	f := &fabric{
		self:   self,
		routes: make(map[string]Route),
		links:  make(map[Link]*link),
		real:   &http.Transport{},
	}
	for _, r := range routes {
		f.routes[r.Host] = r
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Host = f.routes[r.In.URL.Host].Real
			r.Out.Host = r.In.Host
		},
		Transport: f,
		// Raft's streams are responses that never end: pass on each piece.
		FlushInterval: -1,
		// A peer that cannot be reached is normal here, and etcd logs it on both sides.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	f.proxy = proxy
	f.server = &http.Server{ErrorLog: proxy.ErrorLog, Handler: f}
	go func() { _ = f.server.Serve(lis) }() // lives as long as the process
	return f, "http://" + lis.Addr().String(), nil
}

// ServeHTTP passes a request on to the peer that it is for.
//
// One request is refused at once: before it starts, a new member checks whether the others have
// started already. If all start together, the others listen but do not answer yet, and the request
// waits for its timeout of a second, for each of them in turn. All members of a new cluster are new,
// so the answer is known.
func (f *fabric) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch _, ok := f.routes[r.URL.Host]; {
	case !ok:
		http.Error(w, "no such peer: "+r.URL.Host, http.StatusBadGateway)
	case f.starting.Load() && r.URL.Path == "/members":
		http.Error(w, "not started", http.StatusServiceUnavailable)
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

// set cuts exactly the given links. When it returns, nothing that has not passed yet can pass them.
func (f *fabric) set(cut []Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range cut {
		f.linkLocked(l).Set(true)
	}
	for l, g := range f.links {
		if !slices.Contains(cut, l) {
			g.Set(false)
		}
	}
}

// counts reports what each link has held so far.
func (f *fabric) counts() []Held {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Held
	for l, g := range f.links {
		if n := g.held.Load(); n > 0 {
			all = append(all, Held{Link: l, Count: n})
		}
	}
	return all
}

func (f *fabric) link(from, to string) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.linkLocked(Link{From: from, To: to})
}

func (f *fabric) linkLocked(l Link) *link {
	if f.links[l] == nil {
		f.links[l] = &link{}
	}
	return f.links[l]
}

// pass blocks while the link is cut; ctx ends when the sender gives up.
func (l *link) pass(ctx context.Context) error {
	if l.Shut() != nil {
		l.held.Add(1)
	}
	return l.Pass(ctx)
}

// RoundTrip passes the request through the gate to the peer, piece by piece, and the response through
// the gate from it.
func (f *fabric) RoundTrip(req *http.Request) (*http.Response, error) {
	peer := f.routes[req.Host].Name
	out, in := f.link(f.self, peer), f.link(peer, f.self)
	ctx := req.Context()
	if err := out.pass(ctx); err != nil {
		return nil, err
	}
	if req.Body != nil {
		req.Body = &gatedBody{ReadCloser: req.Body, gate: out, ctx: ctx}
	}
	resp, err := f.real.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := in.pass(ctx); err != nil {
		_ = resp.Body.Close() // the caller has given up
		return nil, err
	}
	resp.Body = &gatedBody{ReadCloser: resp.Body, gate: in, ctx: ctx}
	return resp, nil
}

// gatedBody makes data that was read wait at the gate before it is returned.
type gatedBody struct {
	io.ReadCloser
	gate *link
	ctx  context.Context
}

func (b *gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if perr := b.gate.pass(b.ctx); perr != nil {
		return 0, perr
	}
	return n, err
}
