// Package endpoints makes clients that follow the members of their etcd cluster, so that members can
// be replaced while the program runs.
//
// The client's endpoints are those that it was configured with, and one URL of each member that
// none of them reaches. The configured ones are never removed: the list is never empty, and never
// worse than the configuration.
//
// # Which members are added
//
// A member is added if all of this holds:
//
//   - it votes and has started: learners refuse most requests, and a member that has not started
//     has no URL;
//   - no endpoint has the address of one of its URLs, and no configured endpoint answers with its
//     ID, as another name of its address does;
//   - one of its URLs uses TLS exactly if the configured endpoints do, and answers a Status request
//     within two seconds with the ID of the cluster and of the member. So URLs that are of no use
//     here, such as http://0.0.0.0:2379 or a name with another certificate, change nothing;
//   - an endpoint answers such a request at the same time.
//
// It is removed when the list of members no longer has it. A list of another cluster, or one
// without IDs, as that of a gRPC proxy, is ignored.
//
// If the program itself calls SetEndpoints or Sync, its endpoints are the configured ones from then
// on.
//
// # Requests
//
// Sessions request the list of members with each renewal, and the package reads these replies. A
// client without such replies requests the list every half minute, and at most every three seconds
// after requests that failed. When the list has a member to which no endpoint leads, each endpoint
// and each URL of the member receive one Status request, on a connection of its own, with the auth
// token of the client. If no URL can be used, this is repeated after 3 s, and then after pauses that
// double to 5 minutes.
//
// # Not guaranteed
//
// Nothing is learned while no member is reached. So at least one member must be reached from the
// time at which a new one serves requests until the client has added that, which takes a quarter of
// the TTL with a session, and half a minute otherwise.
//
// Clusters that were bootstrapped with the same names, URLs and token have the same IDs: etcd
// computes them from these. If a URL leads to such another cluster from here, as localhost may, or a
// name that two networks have, it is added. Each cluster needs an --initial-cluster-token of its own.
package endpoints
