package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchsite"
)

// benchPlace is the site that a command measures on, and what must be ended after it.
type benchPlace struct {
	bench.Site
	closers []func() error
}

// close ends everything that was started, the last first.
func (p *benchPlace) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	return errors.Join(errs...)
}

// place starts a cluster, or asks the one that was named about itself. died is called
// when a member of ours ends in the middle of it. On an error nothing is left.
func (f *benchFlags) place(ctx context.Context, died func(error)) (*benchPlace, error) {
	p := &benchPlace{}
	if err := f.furnish(ctx, p, died); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (f *benchFlags) furnish(ctx context.Context, p *benchPlace, died func(error)) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	if !f.remote {
		cluster, storage, err := benchsite.Start(ctx, benchsite.Config{
			Member: []string{executable, "etcd", "member"}, Members: f.members, Data: f.data, Died: died,
		})
		if err != nil {
			return err
		}
		p.closers = append(p.closers, cluster.Close)
		f.conn.Endpoints, p.Storage = cluster.Endpoints(), storage
	}
	cfg, err := f.conn.Config()
	if err != nil {
		return err
	}
	p.Client = *cfg
	if err := f.survey(ctx, p); err != nil {
		return err
	}
	greeting, err := json.Marshal(f.conn)
	if err != nil {
		return err
	}
	workers := benchsite.NewWorkers(func() *exec.Cmd { return exec.Command(executable, "bench", "worker") }, greeting)
	p.closers = append(p.closers, func() error { workers.Close(); return nil })
	p.Spawn = workers.Spawn
	return nil
}

// survey fills in what the cluster says of itself.
func (f *benchFlags) survey(ctx context.Context, p *benchPlace) error {
	client, err := clientv3.New(p.Client)
	if err != nil {
		return f.conn.Explain(ctx, err)
	}
	defer func() { _ = client.Close() }()
	bounded, cancel := context.WithTimeout(ctx, f.conn.CommandTimeout)
	defer cancel()
	facts, err := benchsite.Survey(bounded, client)
	if err != nil {
		return f.conn.Explain(ctx, err)
	}
	p.Members, p.Version = facts.Members, facts.Version
	meters := benchsite.NewMeters(facts.URLs, p.Client.TLS)
	if _, err := meters.Read(bounded); err != nil {
		// They may be served elsewhere, or not to us: the columns are left out.
		meters.Close()
		return nil
	}
	p.Metrics = meters.Read
	p.closers = append(p.closers, func() error { meters.Close(); return nil })
	return nil
}

// benchError adds what to do to an error of a run.
func (f *benchFlags) benchError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, bench.ErrInvalid), errors.Is(err, benchsite.ErrInvalid):
		return cli.Exit(cli.ExitUsage, err)
	case ctx.Err() != nil, !f.remote: // of our own cluster no flag says where it is
		return err
	}
	return f.conn.Explain(ctx, err)
}
