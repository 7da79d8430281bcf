// Package renewal sends the renewals of all sessions of one client, and has a majority of
// etcd's members confirm them.
//
// etcd's client opens a stream for each single renewal, and a request to the majority costs etcd
// more than a renewal. Here the sessions of a client share both:
//
//   - stream.go puts renewals on one stream of etcd's LeaseKeepAlive API. Sessions whose renewals
//     are nearly due renew together. It decides nothing: a session whose renewal is not answered
//     sends it once more as a single request.
//   - majority.go asks a majority. One answer confirms all renewals that were answered before the
//     request was sent (decision 0015).
//   - client.go is what the sessions of one client share, for as long as there are any. An idle
//     session has no goroutine.
//
// Package core decides when to renew, what an answer means, and how long to wait for it.
package renewal
