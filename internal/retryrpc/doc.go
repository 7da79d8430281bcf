// Package retryrpc repeats a request to etcd until it is answered. Every package that sends
// requests needs the same loop. Each of its rules prevents a hang or a busy loop that has occurred
// elsewhere:
//
//   - each attempt has its own time-out, because a member that does not respond must cost an
//     attempt and not all of the caller's time;
//   - a permanent refusal ends the loop (internal/rpcerr), and so does a refusal that is repeated
//     for a while, and a closed client, which etcd's client does not always report;
//   - between attempts there is a pause that grows and has jitter (internal/retry), and gRPC's own
//     pause, which is far longer, is cut short;
//   - the caller's context ends the loop; the error has its cause and the last answer;
//   - each failed attempt can be reported, with the fault of the connection: under a context
//     without an end nothing else would show that etcd is not reached.
//
// The caller must know whether a request may be repeated: everything sent through this package must
// be harmless when repeated.
package retryrpc
