package postgres

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// timing is one set of settings.
type timing struct {
	// server are the settings of the server, those that are not its defaults.
	server []string
	// ping is how often a leader checks its connection, and how long an answer may take; 0 means never.
	ping time.Duration
}

var timings = map[string]timing{
	peer.Defaults: {},
	peer.Shortest: {
		server: []string{
			"tcp_keepalives_idle=1", "tcp_keepalives_interval=1", "tcp_keepalives_count=1",
			// Keepalives are sent on idle connections only. A connection with an answer that was not acknowledged would
			// be retried for a quarter of an hour.
			"tcp_user_timeout=1000",
			// A waiting candidate's connection is not read otherwise: if the machine of one has died, it would be
			// granted the lock.
			"client_connection_check_interval=1000",
		},
		ping: time.Second,
	},
}

// maxConnections is the server's limit in all settings: each candidate needs a connection, and the scenarios have
// 1,000. The default is 100.
const maxConnections = "max_connections=1200"

// System describes leader election by an advisory lock.
func System() peer.System {
	return peer.System{
		Name:  "postgres",
		Title: "PostgreSQL",
		Recipe: "Each candidate asks for the same session-level advisory lock on a connection of its own. The lock ends with the " +
			"connection; the server queues the candidates.",
		Links: []peer.Link{
			{Text: "advisory locks", URL: "https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS"},
			{Text: "settings of connections", URL: "https://www.postgresql.org/docs/15/runtime-config-connection.html"},
		},
		Module: "github.com/jackc/pgx/v5",
		Guard: "A leader writes on the connection that holds the lock: if the server has released the lock, the connection " +
			"does not exist any more.",
		Unfair: []string{
			"To its advantage: it is one server: a write is stored once, on one machine, and no server takes over. The systems with three " +
				"servers replicate each write to a majority.",
			"To its advantage: a crashed process is noticed at once in both settings, because its kernel closes the connection. Servers that wait " +
				"for the end of a lease or session do not use that notice.",
			"A stopped process remains the leader for as long as it is stopped: its kernel still answers the server's keepalives.",
			"To its advantage: the pings of a leader are this program's: users of advisory locks find no advice in the documentation.",
			"To its advantage: the server's limit of 100 connections, its default, is raised to 1,200; each is a process of several MB.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: {Values: []string{
				"tcp_keepalives_idle, _interval and _count 0 (the system's: on Linux a connection to a dead machine is closed after " +
					"2 h 11 min: 7,200 s and 9 probes of 75 s)",
				"tcp_user_timeout 0, client_connection_check_interval 0",
				"a leader believes that it leads until a statement of its own has failed: chosen by this program, the " +
					"documentation has no advice",
			}},
			peer.Shortest: {
				Loss: 2 * time.Second,
				Values: []string{
					"tcp_keepalives_idle 1 s, tcp_keepalives_interval 1 s, tcp_keepalives_count 1: the smallest values that the server takes",
					"tcp_user_timeout 1 s and client_connection_check_interval 1 s, chosen by this program: they take effect where " +
						"keepalives do not",
					"a leader pings the server each second and ends its leadership if there is no answer for a second: chosen by this " +
						"program, the documentation has no advice",
				},
			},
		},
		Lacks: map[string]string{
			"fanout":       "the recipe has no observers; LISTEN and NOTIFY would be an addition to it",
			"store-leader": "there is one server; a standby that takes over does not have the locks",
		},
		Start: start,
		Dial:  dial,
	}
}
