package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/campaigns"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/capture"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/diagram"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/keys"
)

// tracer is one run of "eldest trace".
type tracer struct {
	cmd *cobra.Command
	*traceFlags
	// out receives the trace: it is stderr if stdout is the program's.
	out  io.Writer
	live transcript.Live
	// broken is the first error of writing the trace.
	broken error
}

func newTracer(cmd *cobra.Command, f *traceFlags) *tracer {
	t := &tracer{cmd: cmd, traceFlags: f, out: cmd.OutOrStdout()}
	if f.program != nil {
		t.out = cmd.ErrOrStderr()
	}
	return t
}

// run captures the messages and writes the output of the end. The program's exit code comes last.
func (t *tracer) run() error {
	ctx := t.cmd.Context()
	c, err := t.capture(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return cli.Exit(exitInterrupted, nil)
		}
		return err
	}
	var ended error
	if t.program != nil {
		ended = t.trace(ctx, c)
	} else {
		ended = t.play(ctx, c)
	}
	messages, err := c.Close()
	if !t.late() {
		err = errors.Join(err, t.broken)
	} else if err == nil {
		err = t.finish(messages)
	}
	var coded *cli.CodedError
	if errors.As(ended, &coded) && err == nil {
		return ended
	}
	return errors.Join(ended, err)
}

// late reports whether output is written at the end, for which all messages are kept.
func (t *tracer) late() bool { return t.normalise || t.svg != "" }

func (t *tracer) capture(ctx context.Context) (*capture.Capture, error) {
	cfg := capture.Config{Endpoints: t.conn.Endpoints, Forget: t.program != nil && !t.late()}
	if len(t.conn.Endpoints) > 0 {
		client, err := t.conn.Config()
		if err != nil {
			return nil, err
		}
		cfg.TLS = client.TLS
	}
	if t.program != nil && t.election != "" {
		candidates, _ := keys.Range(t.election)
		mailboxes, _ := keys.RequestRange(t.election)
		cfg.Filter = transcript.NewFilter(candidates, mailboxes).Keep
	}
	if !t.normalise {
		cfg.Tell = t.tell
	}
	starting, cancel := context.WithTimeout(ctx, devcluster.StartTimeout)
	defer cancel()
	return capture.Start(starting, cfg)
}

// tell writes a message when it arrives. Calls are sequential.
func (t *tracer) tell(m wiretap.Message) {
	if t.broken != nil {
		return
	}
	entries := t.live.Entries(m)
	if cli.WantsJSON(t.cmd) {
		t.broken = transcript.JSON(t.out, m, entries)
		return
	}
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.Line() + "\n")
	}
	_, t.broken = t.out.Write(b.Bytes())
}

// play runs a scene.
func (t *tracer) play(ctx context.Context, c *capture.Capture) error {
	bounded, cancel := t.traceLimit(ctx)
	defer cancel()
	scene := t.scene
	scene.Dial = func(lane string) (*clientv3.Client, error) { return t.dial(bounded, c.Endpoint(), lane) }
	err := campaigns.Play(bounded, c, scene)
	switch {
	case ctx.Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case err != nil && len(t.conn.Endpoints) > 0:
		return t.conn.Explain(ctx, err)
	}
	return err
}

// dial returns a client of the proxy, with the user and the namespace of the flags.
func (t *tracer) dial(ctx context.Context, endpoint, lane string) (*clientv3.Client, error) {
	conn := &connect.Flags{
		Endpoints: []string{endpoint}, User: t.conn.User, Password: t.conn.Password, Namespace: t.conn.Namespace,
		DialTimeout: t.conn.DialTimeout, CommandTimeout: t.conn.CommandTimeout,
	}
	return conn.Dial(ctx, grpc.WithUserAgent(lane))
}

// trace runs a program.
func (t *tracer) trace(ctx context.Context, c *capture.Capture) error {
	code, err := c.Run(ctx, capture.Program{Args: t.program, In: t.cmd.InOrStdin(), Out: t.cmd.OutOrStdout(), Err: t.cmd.ErrOrStderr()})
	switch {
	case err != nil:
		return cli.Exit(cli.ExitUsage, err)
	case ctx.Err() != nil:
		return cli.Exit(exitInterrupted, nil)
	case code < 0:
		return cli.Exit(cli.ExitFailed, errors.New("the program was ended by a signal"))
	case code > 0:
		return cli.Exit(code, nil)
	}
	return nil
}

// finish writes the normal form and the diagram.
func (t *tracer) finish(messages []wiretap.Message) error {
	entries := transcript.Normalise(messages)
	if t.normalise {
		write := transcript.Print
		if cli.WantsJSON(t.cmd) {
			write = transcript.PrintJSON
		}
		if err := write(t.out, entries); err != nil {
			return err
		}
	}
	if t.svg == "" {
		return t.broken
	}
	var drawing bytes.Buffer
	if err := diagram.Draw(&drawing, t.title(), entries); err != nil {
		return err
	}
	return errors.Join(t.broken, os.WriteFile(t.svg, drawing.Bytes(), 0o644)) //nolint:gosec // for reading
}

// title returns the title of the diagram.
func (t *tracer) title() string {
	switch {
	case t.program != nil && t.election != "":
		return cli.Printable(t.program[0]) + ", election " + cli.Printable(t.election)
	case t.program != nil:
		return cli.Printable(t.program[0])
	case t.scene.Contender != contender.Eldest:
		return string(t.scene.Act) + ", with " + t.scene.Contender
	}
	return string(t.scene.Act)
}
