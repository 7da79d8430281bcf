package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show how this executable was built",
		Long: `Shows the version of eldest and what it was built from. The version is "devel" where none was
recorded, as in a test. With --json it is one object with version, go, os, arch and, where they were
recorded, revision (the commit), modified (true: the sources were changed since), etcd_client and
etcd_server (the versions of the etcd modules).

Exit codes: 0 done; 1 failed; 2 bad usage.`,
		Example: `  eldest version
  eldest version --json | jq -r .revision`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := cli.ReadBuild()
			revision := b.Revision
			if b.Modified {
				revision += ", modified"
			}
			return show(cmd, b, func(w io.Writer) {
				var rows []string
				for _, row := range [][2]string{
					{"eldest", b.Version}, {"revision", revision}, {"go", b.Go}, {"system", b.OS + "/" + b.Arch},
					{"etcd client", b.EtcdClient}, {"etcd server", b.EtcdServer},
				} {
					if row[1] != "" {
						rows = append(rows, fmt.Sprintf("%s\t%s", row[0], row[1]))
					}
				}
				table(w, rows...)
			})
		},
	}
}
