package curator

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
)

var roles = []elector.Role{elector.Neither, elector.Leading, elector.Following}

// requireRole asks for each role: 200 for the one it is and 503 for the others, with
// one body.
func requireRole(t testing.TB, p *speaker, is elector.Role, body map[string]any) {
	t.Helper()
	for _, want := range roles {
		w := p.role(want, http.MethodGet)
		if want == is {
			require.Equal(t, http.StatusOK, w.Code, "%v", p.Status())
		} else {
			require.Equal(t, http.StatusServiceUnavailable, w.Code, "%v", p.Status())
		}
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		var got map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, body, got)
	}
}

// Row 53: a load balancer finds the leader, or the followers, by the status code.
func TestRequirement53RoleHandler(t *testing.T) {
	election := electionOf(t)
	a, b := newSpeaker(t, election, "a"), newSpeaker(t, election, "b")
	nobody := map[string]any{"role": "neither", "node": "a", "leader": "", "address": "", "token": 0.0}
	requireRole(t, a, elector.Neither, nobody)
	stopA := a.stand(t)
	_, token, _ := a.becomes(t, elector.Leading).Own()
	led := map[string]any{"role": "leading", "node": "a", "leader": "a", "address": a.cfg.Address, "token": float64(token)}
	requireRole(t, a, elector.Leading, led)
	b.stand(t)
	b.becomes(t, elector.Following)
	led["role"], led["node"] = "following", "b"
	requireRole(t, b, elector.Following, led)
	stopA()
	requireRole(t, a, elector.Neither, nobody)
	_, token, _ = b.becomes(t, elector.Leading).Own()
	requireRole(t, b, elector.Leading, map[string]any{"role": "leading", "node": "b", "leader": "b", "address": b.cfg.Address, "token": float64(token)})
}

// Whatever others call themselves, an answer does nothing to the terminal on which somebody
// reads it, and still says it.
//
// Broken by json.Marshal alone.
func TestRoleAnswersAreAscii(t *testing.T) {
	election := electionOf(t)
	a, b := newSpeaker(t, election, "x\x1b[2J\u009b31m\x7f\u202ecod\u2028\U0001f600"), newSpeaker(t, election, "b")
	a.stand(t)
	a.becomes(t, elector.Leading)
	b.stand(t)
	b.becomes(t, elector.Following)
	body := b.role(elector.Following, http.MethodGet).Body.String()
	for _, r := range strings.TrimSuffix(body, "\n") {
		require.True(t, ' ' <= r && r <= '~', "%q in %q", r, body)
	}
	var answer roleAnswer
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, a.cfg.NodeID, answer.Leader)
}

func TestRoleHandlerMethods(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n")
	require.Equal(t, http.StatusOK, p.role(elector.Neither, http.MethodHead).Code)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := p.role(elector.Neither, method)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
}
