// Package past records the requests that this process has sent about a lease and its keys, and that
// may therefore arrive at etcd later: after the session that sent them was abandoned, while another
// session uses the resumed lease.
//
//   - A token is doomed before the request that deletes its key is sent. No candidate of the lease
//     holds a key with a doomed token again, so a late deletion cannot end a tenure (G2).
//   - A token has one holder at a time among the candidates of all sessions of the lease.
//   - A key is owed when a registration was sent whose outcome is unknown: the registration may
//     arrive for as long as the lease exists.
//   - A lease counts as being revoked from before the request until etcd has answered.
package past
