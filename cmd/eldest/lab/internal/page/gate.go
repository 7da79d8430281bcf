package page

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
)

// gate decides which requests are served.
type gate struct {
	// address is that of the listener, name the host name or address of --listen.
	address netip.AddrPort
	name    string
	token   string
}

// host is the host and port that are printed: those of the listener, or of the loopback interface if
// it listens on all interfaces.
func (g gate) host() string {
	at := g.address.Addr().Unmap()
	if at.IsUnspecified() {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(at, g.address.Port()).String()
}

func (g gate) url() string {
	u := url.URL{Scheme: "http", Host: g.host(), Path: "/", RawQuery: url.Values{"token": {g.token}}.Encode()}
	return u.String()
}

// cookie is the name of the cookie: browsers keep one set of cookies for all ports of a host.
func (g gate) cookie() string { return "eldest-lab-" + strconv.Itoa(int(g.address.Port())) }

// protect sets the headers of all answers.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// pass reports whether a request may be served; otherwise it has answered it.
func (g gate) pass(w http.ResponseWriter, r *http.Request) bool {
	if !g.own(r.Host) {
		http.Error(w, fmt.Sprintf("this is eldest lab at %s, and not the host that was asked for", g.host()), http.StatusMisdirectedRequest)
		return false
	}
	if r.Method == http.MethodGet && r.URL.Path == "/" && g.equal(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return false
	}
	if cookie, err := r.Cookie(g.cookie()); err != nil || !g.equal(cookie.Value) {
		http.Error(w, "Open the address that \"eldest lab\" has printed. It ends in ?token=..., and this request has no valid token.", http.StatusForbidden)
		return false
	}
	// Browsers name the origin of each POST. Other clients may not.
	if origin := r.Header.Get("Origin"); r.Method == http.MethodPost && origin != "" && origin != "http://"+r.Host {
		http.Error(w, "only the page of eldest lab itself may do this", http.StatusForbidden)
		return false
	}
	return true
}

func (g gate) equal(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// own reports whether a request's host is this server: the port, and an address or name of it. If it
// listens on all interfaces, every address is accepted. Only a name can be made to resolve to this
// machine by others.
func (g gate) own(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, "80" // which browsers leave out
	}
	if port != strconv.Itoa(int(g.address.Port())) {
		return false
	}
	if host == "localhost" || g.name != "" && host == g.name {
		return true
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	mine := g.address.Addr().Unmap()
	return at.Unmap() == mine || mine.IsUnspecified()
}
