package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// A worker is a place in another process. Calls are gRPC calls, whose messages are JSON, over the
// process's standard input and output.

// method is the only method of a worker.
const method = "/eldest.bench.Worker/Do"

var service = grpc.ServiceDesc{
	ServiceName: "eldest.bench.Worker", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Do", Handler: func(l any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var c call
		if err := decode(&c); err != nil {
			return nil, err
		}
		a, err := l.(*local).do(ctx, c)
		if err != nil {
			// An error of etcd must not look like an error of the connection to the worker.
			a = answer{Err: err.Error(), Unsupported: errors.Is(err, errors.ErrUnsupported)}
		}
		return &a, nil
	}}},
}

// jsonCodec encodes messages.
type jsonCodec struct{}

// Name, Marshal and Unmarshal implement encoding.Codec.
func (jsonCodec) Name() string                       { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// buffer is the size of a connection within this process.
const buffer = 64 << 10

// Work hosts sessions, candidates and observers for a run in another process, with one
// client of the site. A process of Site.Worker runs it; nothing else may be written to out.
// For contenders that have a keeper (package keeper), contender.KeeperWith must be set.
//
// Work blocks until in ends (it returns nil), in is not from a run (an error), or ctx ends (its
// cause). Then calls in progress are canceled and all open sessions and observers are closed, which
// takes at most ten seconds. After the end of ctx a goroutine that reads from in remains for as
// long as that read blocks.
func Work(ctx context.Context, site Site, in io.Reader, out io.Writer) error {
	l, err := newLocal(site)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(jsonCodec{}), grpc.WaitForHandlers(true))
	server.RegisterService(&service, l)
	listener := bufconn.Listen(buffer)
	go func() { _ = server.Serve(listener) }()
	conn, err := listener.Dial()
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(out, conn) }()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, in)
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = conn.Close() // otherwise Stop waits for a run that has sent nothing yet
	server.Stop()
	l.closeAll()
	return err
}

// errWorkerEnded is returned for calls to a worker that has ended.
var errWorkerEnded = errors.New("the worker has ended")

// worker is the place as this process uses it.
type worker struct {
	cmd   *exec.Cmd
	conn  *grpc.ClientConn
	gone  chan struct{} // closed when the process has ended
	cause error         // why it ended, if it did so by itself; valid once gone is closed
}

func startWorker(site Site) (*worker, error) {
	if site.Worker == nil {
		return nil, fmt.Errorf("starting a worker: %w", errors.ErrUnsupported)
	}
	listener := bufconn.Listen(buffer)
	client, err := grpc.NewClient("passthrough:///worker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(jsonCodec{})), grpc.WithIdleTimeout(0))
	if err != nil {
		return nil, err
	}
	client.Connect()
	conn, err := listener.Accept()
	_ = listener.Close() // there is only one connection
	w := &worker{cmd: site.Worker(), conn: client, gone: make(chan struct{})}
	if err == nil {
		err = w.start(site, conn)
	}
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	return w, nil
}

// start starts the process with a connection as its standard input and output.
func (w *worker) start(site Site, conn net.Conn) error {
	var stderr bytes.Buffer
	w.cmd.Stdout, w.cmd.Stderr = conn, &stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return err
	}
	start := w.cmd.Start
	if site.Start != nil {
		start = func() error { return site.Start(w.cmd) }
	}
	if err := start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, io.MultiReader(bytes.NewReader(site.WorkerInput), conn))
		_ = in.Close()
	}()
	go func() {
		_ = w.cmd.Wait()
		if code := w.cmd.ProcessState.ExitCode(); code > 0 {
			w.cause = fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(stderr.String()))
		}
		close(w.gone)
		_ = conn.Close()
	}()
	return nil
}

// do ends with ctx on both sides; it does not wait for the worker's answer then.
func (w *worker) do(ctx context.Context, c call) (a answer, err error) {
	err = w.conn.Invoke(ctx, method, &c, &a)
	switch {
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	case err != nil:
		select {
		case <-w.gone:
			return answer{}, w.ended()
		case <-time.After(time.Second): // it may be about to end
			return answer{}, fmt.Errorf("%w: %w", errWorkerEnded, err)
		}
	case a.Unsupported:
		return answer{}, fmt.Errorf("%s (%w)", a.Err, errors.ErrUnsupported)
	case a.Err != "":
		return answer{}, errors.New(a.Err)
	}
	return a, nil
}

func (w *worker) ended() error {
	select {
	case <-w.gone:
	default:
		return nil
	}
	if w.cause == nil {
		return errWorkerEnded
	}
	return fmt.Errorf("%w: %w", errWorkerEnded, w.cause)
}

func (w *worker) kill() error {
	_ = w.cmd.Process.Kill() // it may have ended already
	<-w.gone
	_ = w.conn.Close() // it may be closed already
	return nil
}

// close shuts the worker down in an orderly way, or kills it if that takes too long.
func (w *worker) close() error {
	_ = w.conn.Close() // this closes the process's input
	select {
	case <-w.gone:
	case <-time.After(2 * cleanupTimeout):
	}
	return w.kill()
}
