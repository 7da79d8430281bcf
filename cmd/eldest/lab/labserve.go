package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/clusterview"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/page"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/sandbox"
)

// shown is what the page shows.
type shown interface {
	feed.Source
	// Close ends it, and waits.
	Close() error
}

// runLab serves the page until a signal, or until --for is over. Both are the normal end.
func runLab(cmd *cobra.Command, f *labFlags) (err error) {
	if !f.remote {
		if runtime.GOOS != "linux" { // only there processes share a clock that cannot be set
			return errors.New("lab needs Linux, except with --endpoints")
		}
		defer heedSignals(cmd)()
	}
	ctx := cmd.Context()
	// The address is taken first: that it is in use is known before anything is started.
	listener, err := httpstatus.Listen(f.listen)
	if err != nil {
		return cli.Usagef("--listen %q: %w", f.listen, err)
	}
	source, err := f.source(cmd)
	switch {
	case err != nil && ctx.Err() != nil: // a signal during the start
		return listener.Close()
	case err != nil:
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	server, err := page.New(page.Config{Source: source, Listen: f.listen, Listener: listener})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if f.limit > 0 {
		limited, cancel := context.WithTimeout(ctx, f.limit)
		defer cancel()
		ctx = limited
	}
	if f.scenario != nil {
		if err := source.Play(ctx, *f.scenario); err != nil {
			return f.playFailed(ctx, err)
		}
	}
	if err := f.announce(cmd, server, source.Info()); err != nil {
		return err
	}
	return server.Serve(ctx)
}

// playFailed is the error of a scenario that has not begun.
func (f *labFlags) playFailed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // a signal, or --for, has ended it
	case errors.Is(err, feed.ErrRefused):
		return cli.Usagef("--play %s: %w", cli.Printable(f.play), err)
	}
	return err
}

// source starts a cluster, or attaches to an existing one.
func (f *labFlags) source(cmd *cobra.Command) (shown, error) {
	if f.remote {
		return f.attach(cmd)
	}
	var err error
	if f.box.Executable, err = os.Executable(); err != nil {
		return nil, err
	}
	f.box.Election, f.box.Version = f.election, cli.Version()
	f.box.Member = []string{f.box.Executable, "etcd", "member"}
	box, err := sandbox.Open(cmd.Context(), f.box)
	if err != nil { // and no *Sandbox that is nil within an interface that is not
		return nil, err
	}
	return box, nil
}

// attached is an existing cluster, with its client.
type attached struct {
	*clusterview.View
	client *clientv3.Client
}

// Close ends the view, and closes the client.
func (a attached) Close() error { return errors.Join(a.View.Close(), a.client.Close()) }

// attach shows an existing cluster. If it does not answer, that is shown, too; only a login has to
// succeed before.
func (f *labFlags) attach(cmd *cobra.Command) (shown, error) {
	client, err := f.conn.DialPatiently(cmd.Context(), &connect.Notice{Conn: f.conn, Say: cli.ToStderr(cmd)})
	if err != nil {
		return nil, f.conn.Explain(cmd.Context(), err)
	}
	view, err := clusterview.New(clusterview.Config{Client: client, Conn: f.conn, Election: f.election, Write: f.write})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return attached{view, client}, nil
}

// labEvent is the line of "eldest lab --json".
type labEvent struct {
	Event     string   `json:"event"`
	Time      string   `json:"time"`
	Address   string   `json:"address"`
	Mode      string   `json:"mode"`
	Endpoints []string `json:"endpoints"`
}

// announce says where the page is, and opens it if that is wanted.
func (f *labFlags) announce(cmd *cobra.Command, server *page.Server, info feed.Info) error {
	say := cli.ToStderr(cmd)
	if !server.Loopback() {
		say("other machines can reach the page, and there is no TLS: the network can read the token")
	}
	end := "Ctrl-C ends the lab, with everything that it has started."
	switch {
	case f.remote && f.write:
		end = "Ctrl-C ends the lab. The page can evict candidates and transfer leadership."
	case f.remote:
		end = "Ctrl-C ends the lab. The cluster is only read."
	}
	line := fmt.Sprintf("The page is at %s\n%s\n", server.Address(), end)
	if cli.WantsJSON(cmd) {
		line = cli.JSONLine(labEvent{"serving", time.Now().Format(time.RFC3339Nano), server.Address(), info.Mode, info.Endpoints})
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), line); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	if f.open {
		if err := browse(server.Address()); err != nil {
			say(fmt.Sprintf("the browser was not opened (%v): open the address yourself", err))
		}
	}
	return nil
}

// browse starts the system's browser. It does not wait: on some systems the program that was started
// is the browser itself. It is in its own process group, because Ctrl-C is not meant for it.
func browse(address string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	browser := exec.Command(program, address)
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := browser.Start(); err != nil {
		return err
	}
	return browser.Process.Release()
}
