package curator

import (
	"context"

	"github.com/eldest-io/eldest"
)

// Forwarded says of an incoming call, in an interceptor of Config.ServerOptions, whether a
// node has forwarded it: which, and for which tenure. It is what the call says of itself;
// whether it is true is for Config.VerifyHop. In a handler there is no hop any more.
func Forwarded(ctx context.Context) (node string, token eldest.Token, ok bool) {
	h, err := hopOf(ctx)
	if err != nil || h.token == 0 {
		return "", 0, false
	}
	return h.from, h.token, true
}
