package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

func newObserveCmd() *cobra.Command {
	var conn *connect.Flags
	var all bool
	cmd := &cobra.Command{
		Use:   "observe ELECTION",
		Short: "Watch the leader, or the queue, until a signal ends the command",
		Long: `Prints one line for the present leader of an election and one for each change:

  leader   another candidate leads, or the leader is known again
  value    the leader has a new value
  nobody   the queue is empty
  unknown  the leader cannot be read from etcd

If changes follow one another faster than the lines are read, only the newest one is
printed. With --json each is an object with event, time, election, and where they apply
key, lease, token, revision, mod_revision, value, value_base64 (where the value is not
UTF-8) and reason. While etcd cannot be reached it waits.
` + allHelp + valueHelp + `
Exit codes: 0 after a signal; 1 failed; 2 bad usage.
` + connect.Help,
		Example: `  eldest observe nightly-jobs
  eldest observe nightly-jobs --json | jq -r 'select(.event == "leader") | .value'
  eldest observe nightly-jobs --all`,
		Args: cli.Arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Check(args[0]); err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			if err := conn.Resolve(cmd); err != nil {
				return err
			}
			err := runObserve(cmd, conn, args[0], all)
			if cmd.Context().Err() != nil {
				return nil //nolint:nilerr // by a signal, as it should
			}
			return conn.Explain(cmd.Context(), err)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print each change of the whole queue")
	conn = connect.AddFlags(cmd)
	return cmd
}

// runObserve prints events until the command's context ends, a write to stdout fails, or etcd returns
// a permanent error.
func runObserve(cmd *cobra.Command, conn *connect.Flags, name string, all bool) error {
	ctx, say := cmd.Context(), cli.ToStderr(cmd)
	client, err := conn.DialPatiently(ctx, &connect.Notice{Conn: conn, Say: say})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	cfg := observe.Config{
		Election: name, KV: client, Watcher: client,
		Options: observe.Options{Foreign: func(key string) {
			say(fmt.Sprintf("the key %s does not belong to a candidate and is ignored", cli.Printable(key)))
		}},
	}
	if all {
		return observeAll(cmd, conn, client, cfg)
	}
	observer, err := observe.New(cfg)
	if err != nil {
		return err
	}
	defer observer.Close()

	// Next returns the newest state: if the lines are read slowly, states are skipped and the output
	// does not lag behind.
	events := observeEvents{name: name, why: conn.Why}
	for states := observer.Subscribe(); ; {
		state, err := states.Next(ctx)
		if err != nil {
			return err
		}
		at := time.Now()
		event, told := events.next(state)
		if !told {
			continue
		}
		if err := event.print(cmd, at); err != nil {
			return err
		}
	}
}

// observeEvent is one line of "eldest observe --json".
type observeEvent struct {
	Event          string `json:"event"`
	Time           string `json:"time"`
	Election       string `json:"election"`
	Revision       int64  `json:"revision,omitempty"`
	*candidateJSON        // nil in an event without a candidate
	Reason         string `json:"reason,omitempty"`
	Queue          *int   `json:"queue,omitempty"`
}

// print writes the event, which was received at a time, to stdout.
func (e observeEvent) print(cmd *cobra.Command, at time.Time) error {
	e.Time = at.Format(time.RFC3339Nano)
	line := e.text(at)
	if cli.WantsJSON(cmd) {
		line = cli.JSONLine(e)
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), line); err != nil {
		return fmt.Errorf("writing the events: %w", err)
	}
	return nil
}

// text renders the event for people.
func (e observeEvent) text(at time.Time) string {
	if e.candidateJSON == nil {
		return eventLine(at, e.Event, "because", e.Reason)
	}
	return eventLine(at, e.Event, "token", e.Token, "key", cli.Printable(e.Key), "value", operate.ShownValue([]byte(e.Value)))
}

// observeEvents turns states into events.
type observeEvents struct {
	name string
	why  func(error) string // renders why etcd cannot be reached
	last eldest.State
	any  bool
}

// next returns the event for the change from the last state to state; told is false if there is none.
func (o *observeEvents) next(state eldest.State) (event observeEvent, told bool) {
	last, first := o.last, !o.any
	o.last, o.any = state, true
	event = observeEvent{Event: state.Kind.String(), Election: o.name, Revision: state.Revision}
	switch state.Kind {
	case eldest.Led:
		leader := candidateForJSON(state.Leader)
		event.Event, event.candidateJSON = "leader", &leader
		// After "unknown" the leader is reported even if it is the same, because it is known again.
		if last.Kind == eldest.Led && last.Leader.Key == leader.Key && last.Leader.Token == leader.Token {
			event.Event = "value"
			return event, last.Leader.ModRevision != state.Leader.ModRevision
		}
		return event, true
	case eldest.Unknown:
		// Only the first reason is reported: they follow one another every second.
		if told = first || last.Kind != eldest.Unknown; told && state.Reason != nil {
			event.Reason = o.why(state.Reason)
		}
		return event, told
	default:
		return event, first || last.Kind != state.Kind
	}
}
