package curator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf16"

	"github.com/eldest-io/eldest/elector"
)

// roleHandler answers a load balancer's question whether this node has a role.
type roleHandler struct {
	want     elector.Role
	me       self
	life     life
	statuses statuses
}

// roleAnswer is the body of an answer.
type roleAnswer struct {
	// Role is that of this node: "leading", "following" or "neither".
	Role string `json:"role"`
	// Node is the ID of this node.
	Node string `json:"node"`
	// Leader is the ID of the node that leads, and Address where it takes requests;
	// Token names its tenure. Empty and 0 while this node is neither.
	Leader  string `json:"leader"`
	Address string `json:"address"`
	Token   int64  `json:"token"`
}

// ServeHTTP answers GET and HEAD, on any path, from the status at this moment. It never
// blocks. The answer is for this moment only, so nobody may keep it. A node that is
// stopping takes no more calls, whatever it is until it has stopped.
func (h roleHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	s := h.statuses.Status()
	tell := h.me.response(s)
	// Texts and a number: it cannot fail.
	body, _ := json.Marshal(roleAnswer{
		Role: s.Role().String(), Node: tell.GetThisNodeId(),
		Leader: tell.GetLeaderNodeId(), Address: tell.GetLeaderAddress(), Token: tell.GetToken(),
	})
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	code := http.StatusServiceUnavailable
	if s.Role() == h.want && !h.life.over() {
		code = http.StatusOK
	}
	w.WriteHeader(code)
	_, _ = w.Write(append(ascii(body), '\n')) // who hung up needs no answer
}

// ascii writes whatever else is in a text of JSON with JSON's own escapes, which mean the
// same. What others call themselves may be read on a terminal, and encoding/json escapes
// only the first 32 of the characters that one would obey.
func ascii(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r < 0x7f { // not DEL
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
