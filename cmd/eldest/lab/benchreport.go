package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchpage"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

func newBenchReportCmd() *cobra.Command {
	var html, svg string
	cmd := &cobra.Command{
		Use: "report FILE...", GroupID: otherGroup,
		Short: "Render stored JSON again, without measuring",
		Long: `Reads files that --json wrote and shows their tables, or with --html writes one page
with a chapter for each run. With --json it writes all runs as one JSON object. With --svg
it writes each picture to a file of its own, for other documents.

Exit codes: 0 done; 1 failed; 2 bad usage, or a file that is no benchmark's.`,
		Example: `  eldest bench report handover.json crash.json --html page.html
  eldest bench report *.json --json > all.json
  eldest bench report all.json --svg pictures`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs []figures.Run
			for _, path := range args {
				more, err := readRuns(path)
				if err != nil {
					return cli.Exit(cli.ExitUsage, fmt.Errorf("%s: %w", path, err))
				}
				runs = append(runs, more...)
			}
			if svg != "" {
				if err := writePictures(svg, runs); err != nil {
					return err
				}
			}
			return reportRuns(cmd, runs, html)
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write a page with pictures to `FILE`")
	cmd.Flags().StringVar(&svg, "svg", "", "write the pictures to `DIR`, one file each")
	return cmd
}

func readRuns(path string) ([]figures.Run, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return figures.Read(file)
}

// writePictures writes SVG files to a directory, which is made if there is none.
func writePictures(dir string, runs []figures.Run) error {
	files, err := benchpage.Files(runs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.SVG+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reportRuns renders them as the flags want it.
func reportRuns(cmd *cobra.Command, runs []figures.Run, html string) error {
	f := &benchFlags{html: html}
	if cli.WantsJSON(cmd) {
		f.json = toStdout
	}
	papers, err := openPapers(cmd, f)
	if err != nil {
		return err
	}
	err = papers.add(runs...)
	return errors.Join(err, papers.close())
}
