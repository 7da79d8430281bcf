package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

func newObserveCmd() *cobra.Command {
	var conn *connect.Flags
	cmd := &cobra.Command{
		Use:   "observe ELECTION",
		Short: "Watch who leads until a signal ends it",
		Long: `Prints one line for the present leader of an election and one for each change:

  leader   somebody else leads, or it is known again who does
  value    the leader has a new value
  nobody   the queue is empty
  unknown  etcd cannot be asked

Changes that follow one another faster than they can be told are skipped; the
newest is always told. With --json each is an object with event, time, election,
and where they apply key, lease, token, revision, value, value_base64 (where the
value is not UTF-8) and reason. While etcd is away it waits.

` + valueHelp + `
` + nodeHelp + `

Exit codes: 0 after a signal; 1 failed; 2 bad usage.
` + connect.Help,
		Example: `  eldest observe nightly-jobs
  eldest observe nightly-jobs --json | jq -r 'select(.event == "leader") | .value'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Check(args[0]); err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			if err := conn.Resolve(cmd); err != nil {
				return err
			}
			err := runObserve(cmd, conn, args[0])
			if cmd.Context().Err() != nil {
				return nil //nolint:nilerr // by a signal, as it should
			}
			return conn.Explain(cmd.Context(), err)
		},
	}
	conn = connect.AddFlags(cmd)
	return cmd
}

// runObserve prints events until the command's context ends, stdout breaks, or
// etcd refuses for good.
func runObserve(cmd *cobra.Command, conn *connect.Flags, name string) error {
	ctx := cmd.Context()
	client, err := conn.DialPatiently(ctx, &connect.Notice{To: cmd, Conn: conn, Say: cli.ToStderr(cmd)})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	observer, err := observe.New(observe.Config{
		Election: name, KV: client, Watcher: client,
		Foreign: func(key string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: the key %s is no candidate's and is ignored\n", cmd.CommandPath(), cli.Printable(key))
		},
	})
	if err != nil {
		return err
	}
	defer observer.Close()

	// Each state that is read is the newest one: whoever reads our lines slowly
	// skips states and is never behind.
	events := observeEvents{name: name, trouble: func() string { return conn.Diagnose(ctx, client) }}
	for states := observer.Subscribe(); ; {
		state, err := states.Next(ctx)
		if err != nil {
			return err
		}
		event, told := events.next(state)
		if !told {
			continue
		}
		line := event.text()
		if cli.WantsJSON(cmd) {
			line = jsonLine(event)
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), line); err != nil {
			return fmt.Errorf("writing the events: %w", err)
		}
	}
}

// observeEvent is one line of "eldest observe --json".
type observeEvent struct {
	Event    string `json:"event"`
	Time     string `json:"time"`
	Election string `json:"election"`
	Revision int64  `json:"revision,omitempty"`
	*ledJSON
	Reason string `json:"reason,omitempty"`

	at time.Time
}

// ledJSON are the fields of an event with a leader: all of them, even if empty.
type ledJSON struct {
	Key   string       `json:"key"`
	Lease string       `json:"lease"`
	Token eldest.Token `json:"token"`
	valueJSON
}

// observeEvents turns states into events.
type observeEvents struct {
	name    string
	trouble func() string // what is wrong with the connection, or ""
	last    eldest.State
	any     bool
}

// next returns the event by which state differs from the last one, if it does.
func (o *observeEvents) next(state eldest.State) (event observeEvent, told bool) {
	// After "unknown" the leader is told again even if it is the same: the reader
	// must learn that the silence is over.
	last, first := o.last, !o.any
	o.last, o.any = state, true

	event = observeEvent{Event: state.Kind.String(), Election: o.name, Revision: state.Revision, at: time.Now()}
	event.Time = event.at.Format(time.RFC3339Nano)
	switch state.Kind {
	case eldest.Led:
		l := state.Leader
		event.ledJSON = &ledJSON{Key: l.Key, Lease: hexLease(l.Lease), Token: l.Token, valueJSON: valueForJSON(l.Value)}
		event.Event = "leader"
		if last.Kind == eldest.Led && last.Leader.Token == l.Token {
			event.Event = "value"
			return event, last.Leader.ModRevision != l.ModRevision
		}
	case eldest.Unknown:
		// Once per silence: its reasons follow one another every second.
		if told = first || last.Kind != eldest.Unknown; told {
			event.Reason = o.reason(state.Reason)
		}
		return event, told
	}
	return event, first || state.Kind == eldest.Led || last.Kind != state.Kind
}

func (o *observeEvents) reason(err error) string {
	if err == nil {
		return ""
	}
	text := connect.Because(err)
	if trouble := o.trouble(); trouble != "" && !strings.Contains(text, trouble) {
		text += ": " + trouble
	}
	return text
}

// text renders the event for people.
func (event observeEvent) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-7s", event.at.Format("15:04:05.000"), event.Event)
	if l := event.ledJSON; l != nil {
		fmt.Fprintf(&b, "  token %d  key %s  value %s", l.Token, cli.Printable(l.Key), shownValue([]byte(l.Value)))
	}
	if event.Reason != "" {
		fmt.Fprintf(&b, "  because %s", event.Reason)
	}
	b.WriteByte('\n')
	return b.String()
}
