package peer

import (
	"context"
	"errors"
	"net"
	"time"
)

// The settings with which each system is measured.
const (
	// Defaults are the system's own default settings, or those that its documentation shows.
	Defaults = "defaults"
	// Shortest is the shortest failure detection: the documented minimum where there is one, and else, or
	// where the minimum changed leaders without a fault on the machine of the reference run, a value that we
	// chose. Setting.Values say which. No system has a timeout below 100 ms.
	Shortest = "shortest"
)

// Names are the names of all systems, in the order in which they are shown.
var Names = []string{"eldest", "concurrency", "client-go", "zookeeper", "nats", "redis", "redlock", "postgres", "raft"}

// SettingNames are the names of all settings, in the order in which they are shown.
var SettingNames = []string{Defaults, Shortest}

// ErrMissing is wrapped by the error of System.Start if a program is not installed here: the system is
// skipped, and the report has the reason.
var ErrMissing = errors.New("not installed")

// ErrRefused is wrapped by the error of Tenure.Append if the store refused the entry because its writer
// does not lead any more.
var ErrRefused = errors.New("refused")

// System is one way to elect a leader: servers, a client, and the recipe that its community uses. Its JSON, in a
// report, has what a reader of the results must know.
type System struct {
	// Name is its name on the command line and in the report, such as "zookeeper"; Title the one in a
	// table, such as "ZooKeeper".
	Name  string `json:"name"`
	Title string `json:"title"`
	// Recipe says how it elects, in one to three sentences.
	Recipe string `json:"recipe"`
	// Links are the recipe's documentation.
	Links []Link `json:"links"`
	// Guard says how the store guards what a leader writes, "" if it does not.
	Guard string `json:"guard,omitempty"`
	// Unfair says what is unfair in the comparison, and to whom; one sentence each.
	Unfair []string `json:"unfair,omitempty"`
	// Settings has an entry for each of SettingNames.
	Settings map[string]Setting `json:"settings"`
	// Module is the Go module of the client, "" if there is none. The report adds its version.
	Module string `json:"-"`
	// Lacks says, by the name of a scenario, why the system has no such scenario, "" for none.
	Lacks map[string]string `json:"-"`
	// Start starts the servers, with the settings of that name. It blocks until they serve, or ctx ends,
	// which bounds nothing else. On an error only processes of the fleet remain.
	Start func(ctx context.Context, cfg ServerConfig) (*Servers, error) `json:"-"`
	// Dial opens the client of one participant, in the participant's own process. It blocks until the
	// client is connected, or ctx ends, which bounds nothing else.
	Dial func(ctx context.Context, cfg ClientConfig) (Client, error) `json:"-"`
}

// Link is a page of the documentation.
type Link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// Setting is one set of settings of a system.
type Setting struct {
	// Values are the settings that matter, for readers: "session timeout 4 s", one fact each. Where a
	// value is not the documented default or minimum, it says who chose it.
	Values []string `json:"values"`
	// Loss is how long a leader's failure takes to be noticed at most, by the documentation, if nothing
	// tells the servers: the lease, the session timeout. 0 means that it has no such limit.
	Loss time.Duration `json:"loss"`
}

// ServerConfig is how servers are started.
type ServerConfig struct {
	// Setting is one of SettingNames.
	Setting string
	// Dir is an empty directory for their data, which the caller removes when they have ended.
	Dir string
	// Executable is this program, for systems whose servers are Go libraries: it is started with
	// "bench peers-server NAME ARGUMENT..." (see Main).
	Executable string
	// Fleet has the servers' processes. The caller closes it.
	Fleet *Fleet
	// Died is called, from any goroutine, when a server that is not in the fleet ends by itself.
	Died func(error)
}

// Main is the main function of a server that is a Go library: "bench peers-server NAME ARGUMENT..." calls
// the one of that name, which returns only if it fails.
type Main func(args []string) error

// Servers are the running servers of a system.
type Servers struct {
	// Version is what the servers say that they are, such as "ZooKeeper 3.8.0", and Nodes how many there are.
	Version string
	Nodes   int
	// Endpoints is what clients dial. The meaning of each is the system's own.
	Endpoints []string
	// Writes is how many entries the servers have written to their logs, or their data, until now: what
	// must be replicated or stored. Only differences have a meaning.
	Writes func(ctx context.Context) (int64, error)
	// KillLeader kills the process of the servers' own leader with SIGKILL, and returns the time just before
	// the signal, and what starts the process again. It is nil if System.Lacks has a reason.
	KillLeader func(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error)
	// Close, if it is not nil, ends what is not in the fleet, before the fleet is closed.
	Close func() error
}

// ClientConfig is how a participant's client is opened.
type ClientConfig struct {
	// Setting is one of SettingNames.
	Setting   string
	Endpoints []string
	// Election is the name of the election: letters, digits and hyphens. No other election of the run has it.
	Election string
	// ID is the name of the participant, unique in the run: letters, digits and hyphens. Index is its
	// number among the participants of its election, from 0 on.
	ID    string
	Index int
	// Net makes all connections.
	Net Network
}

// Network makes the connections of a participant, which can be cut. All connections must be made by it.
type Network interface {
	// Dial is a dialer; network is "tcp".
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Listen listens on an address of 127.0.0.1.
	Listen(address string) (net.Listener, error)
}

// Client is the client of a participant: one connection, or as many as users of the system would have in
// one process. Its methods, except Close, may be called from many goroutines. One that has observers is an
// Observer, too, and one that other processes guard is a Guarded.
type Client interface {
	// Campaign blocks until a new candidate, whose id is unique in the run, leads, or ctx ends: then the client is
	// closed next. It calls queued once when the candidate is registered and waits, or, where there is no queue,
	// when its first try has failed; not if it leads at once. Candidates of one client share as much as the
	// recipe allows.
	Campaign(ctx context.Context, id string, queued func()) (Tenure, error)
	// Log returns all entries of the election's log, in the order in which the store took them.
	Log(ctx context.Context) ([]string, error)
	// Close ends everything in an orderly way, and blocks until it has ended. It is called once, when all other
	// calls have returned.
	Close() error
}

// Observer is a client whose recipe has observers.
type Observer interface {
	// Observe calls leads with the ID of each new leader, the present one first, until ctx ends. leads is
	// called by one goroutine. It blocks.
	Observe(ctx context.Context, leads func(id string)) error
}

// Guarded is a client with guards.
type Guarded interface {
	// Guards are the processes that guard this one, such as a keeper: a machine that fails ends them too.
	Guards() []int
}

// Tenure is the leadership of a winner. Its methods may be called from many goroutines.
type Tenure interface {
	// Holds reports whether the user of the client may believe at this instant that it leads: what the
	// client would tell a user who asks, or has told by a callback or channel. It does not block.
	Holds() bool
	// Append adds an entry to the election's log in the store, with the best guard that the recipe gives
	// a leader, or else without one. It blocks until the store has answered, or ctx ends. An error that
	// wraps ErrRefused means that the entry was not added and never will be.
	Append(ctx context.Context, entry string) error
	// Resign ends the tenure in an orderly way, and blocks until that is done, or ctx ends. It is called once.
	Resign(ctx context.Context) error
}
