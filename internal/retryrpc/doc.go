// Package retryrpc puts one question to etcd until it is answered. Every room that
// sends requests needs the same loop, and each of its lines has cost somebody a
// hang or a spin elsewhere:
//
//   - each attempt has a time-out of its own, because a member that swallows
//     requests must cost an attempt and not the caller's patience;
//   - a refusal that will not change ends it (internal/rpcerr), as does one that is
//     repeated for a while, and a client that was closed, which etcd's client does not
//     always admit;
//   - between attempts there is a pause that grows and carries jitter
//     (internal/retry), and gRPC's own, which is far longer, is cut short;
//   - the caller's context ends it, with its cause and the last answer in the
//     error;
//   - each failed attempt can be reported, with what is wrong with the connection: under
//     a context without an end nothing else would show that etcd is not reached.
//
// Whether a question may be asked twice is for the caller to know: everything sent
// through here must be harmless when repeated.
package retryrpc
