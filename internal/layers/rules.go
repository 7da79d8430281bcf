package layers

// Module is the path of the root module; import paths below it are written
// relative to it, the root package as ".".
const Module = "github.com/eldest-io/eldest"

// MaxLines is how long a Go file may be.
const MaxLines = 500

// Room is what the rules say of one package, or, where the name ends in "/...", of
// all packages below it that have no rule of their own.
type Room struct {
	// May lists our packages that the room may import, with what for.
	May map[string]string
	// Otherwise is why it may import no other of ours.
	Otherwise string
	// MustNot lists what it must not import of the standard library and of other
	// modules, with the reason. "x/..." is x and all below it.
	MustNot map[string]string
	// Heavy rooms may import what Light does not list.
	Heavy bool
	// Still, if not empty, is why the room must not start goroutines.
	Still string
}

const (
	client      = "go.etcd.io/etcd/client/v3"
	concurrency = client + "/concurrency"
	grpc        = "google.golang.org/grpc/..."
)

// Light lists what the root module may import of other modules.
var Light = map[string]string{
	client:                            "etcd's client, on whose interfaces all of it is built",
	client + "/namespace":             "elections in directories",
	"go.etcd.io/etcd/api/v3/...":      "etcd's messages and errors",
	"golang.org/x/sys/unix":           "the clock that goes on in suspend",
	"go.uber.org/zap":                 "the logger of etcd's client, which builds it anyway",
	"google.golang.org/grpc/codes":    "the codes of etcd's errors",
	"google.golang.org/grpc/status":   "etcd's errors before the client has converted them",
	"google.golang.org/grpc/metadata": "a watch stream is chosen by the metadata of its request",
	"google.golang.org/protobuf/...":  "the leader's value is a message; etcd's client builds it anyway",
}

// Everywhere lists what no room may import, with the reason.
var Everywhere = map[string]string{
	concurrency:                     "eldest exists to do without etcd's concurrency package; tests and benchmarks may stand beside it",
	"testing/...":                   "code of tests belongs into tests",
	"github.com/stretchr/...":       "code of tests belongs into tests",
	"go.uber.org/goleak":            "code of tests belongs into tests",
	"unsafe":                        "nothing here needs it",
	"go.etcd.io/etcd/server/v3/...": "the server is heavy: whoever embeds eldest must not build etcd",
}

var (
	nouns = "the nouns and the sentinel errors"
	asks  = "one question until it is answered"
	pause = "pauses between attempts"
	reads = "reading etcd's errors"
	hooks = "user code off the protocol's goroutine, in order"
	cell  = "state goes out through a latest-value cell"
	sight = "watches that go on"
	left  = "whether a client was left out"
	owns  = "which candidate of a session has which key, and what is to be removed"
)

// Rooms is the plan of the house.
var Rooms = map[string]Room{
	".": {
		Otherwise: "every room imports the root for its nouns, so it can import none of them",
		MustNot: map[string]string{
			"go.etcd.io/...": "the nouns are plain: whoever only names a Leader must not build a client",
			grpc:             "the nouns are plain: whoever only names a Leader must not build gRPC",
			"context":        "no logic lives in the root, only nouns and errors",
			"time":           "no logic lives in the root, only nouns and errors",
		},
		Still: "no logic lives in the root, only nouns and errors",
	},
	"keys": {
		May:       map[string]string{".": nouns},
		Otherwise: "the key layout is arithmetic on strings and knows nobody",
		MustNot: map[string]string{
			"go.etcd.io/...": "the key layout is arithmetic on strings: it must not be able to ask etcd",
			grpc:             "the key layout is arithmetic on strings: it must not be able to ask anybody",
			"context":        "nothing in it blocks, so nothing can be cancelled",
			"time":           "the key layout does not depend on time",
		},
		Still: "the key layout is arithmetic on strings",
	},
	"lease": {
		May:       map[string]string{".": nouns, "internal/absent": left, "internal/ask": asks, "internal/claims": owns, "internal/retry": pause, "internal/rpcerr": reads, "internal/serial": hooks},
		Otherwise: "it knows time, not elections: a session serves any number of them",
	},
	"txn": {
		May:       map[string]string{".": nouns, "keys": "which key, which range", "internal/absent": left, "internal/rpcerr": "whether a write may have happened"},
		Otherwise: "a transaction is one request: it takes a lease ID, not a session, and neither waits nor watches",
		MustNot: map[string]string{
			"time":        "a transaction is one request: how long it may take is its context's business",
			"sync":        "it has no state to guard",
			"sync/atomic": "it has no state to guard",
		},
		Still: "a transaction is one request and leaves nothing running",
	},
	"election": {
		May: map[string]string{
			".": nouns, "keys": "the own key", "lease": "the session", "txn": "every compare-and-commit",
			"internal/watch": "the predecessor, and the own key", "internal/absent": left, "internal/ask": asks, "internal/claims": owns, "internal/retry": pause, "internal/rpcerr": reads, "internal/serial": hooks,
		},
		Otherwise: "one campaign knows nothing of observers, of the next campaign, or of services",
		MustNot:   map[string]string{grpc: "one campaign is not a service"},
	},
	"transfer": {
		May: map[string]string{
			".": nouns, "keys": "whose mailbox", "lease": "what a mailbox is bound to", "txn": "every change of a mailbox", "election": "who is asked, and moves by itself",
			"internal/watch": "the mailbox, and the leader's key", "internal/absent": left, "internal/ask": asks, "internal/retry": pause, "internal/serial": hooks,
		},
		Otherwise: "one candidate is asked at a time; who stands again and again, and why, is another room's",
		MustNot:   map[string]string{grpc: "candidates are asked through etcd, and are no service"},
	},
	"observe": {
		May: map[string]string{
			".": nouns, "keys": "the range, and whose key it is", "internal/watch": sight, "internal/latest": cell,
			"internal/absent": left, "internal/ask": asks, "internal/retry": pause, "internal/rpcerr": reads, "internal/serial": hooks,
		},
		Otherwise: "a reader can never hold: it has no lease and no candidacy",
		MustNot:   map[string]string{grpc: "errors are read in internal/rpcerr"},
	},
	"identity": {
		May:       map[string]string{".": nouns, "identity/identitypb": "the message"},
		Otherwise: "what a node tells of itself is bytes, whoever asks and wherever they stand",
		MustNot: map[string]string{
			"go.etcd.io/etcd/...": "what a node tells of itself is bytes: it must not be able to ask etcd",
			"context":             "nothing in it blocks, so nothing can be cancelled",
		},
		Still: "an identity does nothing",
	},
	"identity/identitypb": {Otherwise: "generated from its .proto, and nothing else"},
	"hooks": {
		May: map[string]string{
			".": nouns, "lease": "its hooks", "election": "its hooks", "observe": "its hooks",
			"internal/rpcerr": "which failure is etcd's silence, and which its refusal",
		},
		Otherwise: "it has others told of what happens, and makes nothing happen",
		MustNot:   map[string]string{"go.etcd.io/etcd/...": "who is told of an election must not be able to ask etcd"},
		Still:     "hooks are called on goroutines that the rooms own",
	},
	"metrics": {
		May: map[string]string{
			".": nouns, "hooks": "what it is told", "lease": "the session's deadline", "election": "the candidate's status",
			"observe": "the queue and who leads", "elector": "the status of a node",
		},
		Otherwise: "a module of its own: it counts what any user can see",
		MustNot:   map[string]string{"go.etcd.io/etcd/...": "a scrape must not be able to ask etcd"},
		Heavy:     true,
		Still:     "numbers are read when they are asked for",
	},
	"traces": {
		May: map[string]string{
			".": nouns, "hooks": "what it is told", "lease": "the session's events", "election": "the candidate's events",
			"observe": "the observer's events", "curator": "which calls were forwarded",
		},
		Otherwise: "a module of its own: it writes down what any user can see",
		MustNot: map[string]string{
			"go.etcd.io/etcd/...":              "who writes an election down must not be able to ask etcd",
			"go.opentelemetry.io/otel/sdk/...": "which SDK there is, is the program's choice",
		},
		Heavy: true,
		Still: "spans are written where things happen",
	},
	"elector": {
		May: map[string]string{
			".": nouns, "election": "one campaign after another", "transfer": "a mailbox for each", "lease": "a new session for each", "observe": "whom to follow",
			"identity": "who is followed", "hooks": "lines for attempts that fail",
			"internal/latest": cell, "internal/retry": pause, "internal/serial": hooks,
		},
		Otherwise: "the loop is made of campaigns and sessions, not of keys and transactions, and serves nobody",
		MustNot:   map[string]string{grpc: "standing again and again is not a service"},
	},
	"curator": {
		May: map[string]string{
			".": nouns, "elector": "the status, and the loop", "txn": "the guard, and nothing else of it",
			"curator/curatorpb": "what it says to callers", "internal/latest": cell, "internal/retry": pause,
		},
		Otherwise: "the service sees statuses and tenures, neither leases nor keys",
		Heavy:     true,
	},
	"curator/curatorpb": {Otherwise: "generated from its .proto, and nothing else", Heavy: true},
	"curator/kv": {
		May: map[string]string{
			".": nouns, "elector": "its tenure", "curator": "what it tells the curator", "curator/kv/kvpb": "its service",
		},
		Otherwise: "the example service uses what any user's service has: a tenure and its guard",
		Heavy:     true,
	},
	"curator/kv/kvpb": {Otherwise: "generated from its .proto, and nothing else", Heavy: true},
	"fence": {
		May:       map[string]string{".": nouns, "keys": "what may name an election", "fence/fencepb": "what it says to callers"},
		Otherwise: "it compares tokens, whoever won them and whatever is fenced",
		MustNot: map[string]string{
			"go.etcd.io/etcd/...": "a store outside etcd need not build etcd's client to refuse an older token",
			"database/sql/...":    "which database keeps the tokens is the user's choice",
		},
		Heavy: true,
		Still: "a request is admitted on the goroutine that serves it",
	},
	"fence/fencepb": {Otherwise: "generated from its .proto, and nothing else", Heavy: true},
	"resolver": {
		May: map[string]string{
			".": nouns, "observe": "who leads, asked of etcd", "identity": "the leader's address",
			"curator/curatorpb": "who leads, asked of a node", "internal/absent": left, "internal/retry": pause,
		},
		Otherwise: "a client needs to know where the leader is, not how it became one",
		Heavy:     true,
	},
	"compat/concurrency": {
		May: map[string]string{
			".": nouns, "keys": "the own key, and whose key it is", "lease": "the session", "txn": "every compare-and-commit",
			"internal/watch": sight, "internal/ask": asks, "internal/claims": owns, "internal/retry": pause, "internal/rpcerr": reads,
		},
		Otherwise: "etcd's API is made of what our own is made of; it is another face of the same steps, and stands on no other face",
	},
	"bench": {
		May:       map[string]string{".": nouns, "bench/contender": "who is measured", "internal/retry": pause},
		Otherwise: "it measures contenders, each in the same way, and knows none of them",
		Heavy:     true,
	},
	"bench/contender": {
		May: map[string]string{
			".": nouns, "lease": "measured", "election": "measured", "observe": "measured",
		},
		Otherwise: "what users cannot use need not be measured",
		Heavy:     true,
	},
	"internal/watch": {
		May:       map[string]string{".": nouns, "internal/ask": asks, "internal/retry": pause, "internal/rpcerr": reads},
		Otherwise: "it follows keys, whatever they mean",
	},
	"internal/ask": {
		May:       map[string]string{".": nouns, "internal/retry": pause, "internal/rpcerr": reads},
		Otherwise: "it repeats a question, whatever is asked",
	},
	"internal/claims": {
		May:       map[string]string{".": nouns, "internal/retry": pause},
		Otherwise: "it decides who has which key, and sends nothing",
		MustNot: map[string]string{
			"go.etcd.io/...": "it decides who has which key, and sends nothing",
			grpc:             "it decides who has which key, and sends nothing",
		},
	},
	"internal/absent": {
		Otherwise: "whether something is there can be asked without anybody",
		Still:     "looking takes no time",
	},
	"internal/latest": {Otherwise: "a cell holds any value"},
	"internal/retry":  {Otherwise: "a pause knows nothing of what is tried", Still: "its callers wait"},
	"internal/serial": {Otherwise: "callbacks are run whatever they are for"},
	"internal/rpcerr": {
		Otherwise: "errors are read for all rooms alike",
		MustNot: map[string]string{
			client: "errors are the api module's; who reads them must not be able to cause them",
			"time": "an error is the same at any time",
		},
		Still: "reading an error takes no time",
	},
	"internal/etcdtest": {
		Otherwise: "the etcd that tests run against must not depend on what they test",
		Heavy:     true,
	},
	"internal/layers": {Otherwise: "the rules judge all rooms and use none", Still: "reading takes its turn"},
	"oracle": {
		Otherwise: "it judges what is written down, and must not be able to ask whom it judges",
		MustNot: map[string]string{
			"go.etcd.io/...": "it judges plain data: processes that are gone, and stores that were no etcd",
			grpc:             "it judges plain data: processes that are gone, and stores that were no etcd",
		},
		Heavy: true,
		Still: "a judgement is a pure function",
	},
	"cmd/eldest/...": {
		May: map[string]string{
			".": nouns, "keys": "public", "lease": "public", "txn": "public", "election": "public", "observe": "public",
			"transfer": "public", "elector": "public", "curator": "public", "identity": "public", "resolver": "public", "bench/contender": "whom it measures",
			"hooks": "public", "metrics": "public", "traces": "public", "fence": "the fenced store of a run under faults",
			"curator/curatorpb": "public", "curator/kv": "public", "curator/kv/kvpb": "public", "cmd/eldest/internal/...": "its own",
			"bench": "what it measures with", "oracle": "who judges a run under faults", "internal/etcdtest": "members that can be cut off, and networks that lose replies",
		},
		Otherwise: "a command uses what a user can use",
		Heavy:     true,
	},
	"examples/...": {
		May: map[string]string{
			".": nouns, "keys": "public", "lease": "public", "txn": "public", "election": "public", "observe": "public",
			"transfer": "public", "elector": "public", "curator": "public", "identity": "public", "resolver": "public", "fence": "public",
			"curator/curatorpb": "public", "curator/kv": "public", "curator/kv/kvpb": "public",
		},
		Otherwise: "an example builds in a module of the reader's own, where nothing internal can be imported",
		MustNot: map[string]string{
			"github.com/spf13/...": "whoever copies it needs etcd's client, its logger and gRPC, and nothing else",
		},
		Heavy: true,
	},
	"examples/book/...": {
		May: map[string]string{
			".": nouns, "keys": "public", "lease": "public", "txn": "public", "election": "public", "observe": "public",
			"identity": "public", "examples/book/wire": "etcd, and when a watch is in place",
		},
		Otherwise: "a chapter shows what any user can use",
		MustNot: map[string]string{
			"github.com/spf13/...": "a chapter needs etcd's client, its logger and gRPC, and nothing else",
		},
		Heavy: true,
	},
	"examples/customise/internal/stage": {
		May: map[string]string{
			"lease": "a session", "election": "a candidate", "internal/etcdtest": "the etcd that the examples' tests run against",
		},
		Otherwise: "it is for the examples' tests, and sets up what they start from",
		Heavy:     true,
	},
	"tests/...": {
		May: map[string]string{
			".": nouns, "keys": "public", "lease": "public", "txn": "public", "election": "public", "observe": "public",
			"transfer": "public", "elector": "public", "curator": "public", "identity": "public", "resolver": "public", "fence": "public",
			"curator/curatorpb": "public", "curator/kv": "public", "curator/kv/kvpb": "public",
			"compat/concurrency": "public", "internal/etcdtest": "real etcd",
			"oracle": "who judges", "tests/...": "its own",
		},
		Otherwise: "tests of the whole use what a user can use; what is inside has tests of its own",
		Heavy:     true,
	},
}

// Excused lists rooms for which one rule of Everywhere does not hold, with the
// reason, as "room: import".
var Excused = map[string]string{
	"internal/etcdtest: testing/...":                "it is made for tests",
	"internal/etcdtest: go.uber.org/goleak":         "its Main is the TestMain of other packages",
	"compat/concurrency: " + concurrency:            "transactional memory is etcd's own, under the same names; a test holds it to one file",
	"bench/contender: " + concurrency:               "a peer to be measured against",
	"tests/...: " + concurrency:                     "a peer that the harness must find the known faults of",
	"tests/...: testing/...":                        "the module holds nothing but tests",
	"tests/...: github.com/stretchr/...":            "the module holds nothing but tests",
	"tests/...: go.uber.org/goleak":                 "the module holds nothing but tests",
	"tests/...: unsafe":                             "virtual time needs one variable of etcd's client",
	"tests/...: go.etcd.io/etcd/server/v3/...":      "the real server in virtual time",
	"cmd/eldest/...: " + concurrency:                "chaos tries it beside ours",
	"cmd/eldest/...: go.etcd.io/etcd/server/v3/...": "the development cluster; this module is never imported",
}
