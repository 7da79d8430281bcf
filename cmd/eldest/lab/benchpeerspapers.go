package lab

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/page"
)

// peersPicture is the picture of the Markdown page, which is beside it.
const peersPicture = "elections.svg"

// peersPapers are the outputs of "bench peers": a table on stdout, and files.
type peersPapers struct {
	cmd                  *cobra.Command
	json, html, markdown *paper // nil if not wanted
	picture              string // "" if not wanted
}

// openPeersPapers opens the files, so that a file that cannot be written is reported before anything is
// measured. The caller must close the papers.
func openPeersPapers(cmd *cobra.Command, f *peersFlags) (*peersPapers, error) {
	p := &peersPapers{cmd: cmd}
	out := cmd.OutOrStdout()
	var err error
	if p.json, err = openPaper("--json", f.json, out); err != nil {
		return nil, err
	}
	if p.html, err = openPaper("--html", f.html, out); err != nil {
		return nil, err
	}
	if p.markdown, err = openPaper("--markdown", f.markdown, out); err != nil {
		return nil, err
	}
	if f.markdown != "" && f.markdown != toStdout {
		p.picture = filepath.Join(filepath.Dir(f.markdown), peersPicture)
	}
	return p, nil
}

// write writes the report to all of them.
func (p *peersPapers) write(r *peers.Report) error {
	plain.Texts(r) // errors may have any text
	err := errors.Join(
		p.json.write(func(w io.Writer) error { return peers.Write(w, r) }),
		p.html.write(func(w io.Writer) error { return page.HTML(w, r) }),
		p.markdown.write(func(w io.Writer) error { return page.Markdown(w, r) }),
	)
	if p.picture != "" {
		svg, failed := page.Chart(r)
		switch {
		case failed == nil:
			failed = os.WriteFile(p.picture, []byte(svg), 0o644)
		case errors.Is(failed, page.ErrNothing):
			failed = nil // the page has no picture, too
		}
		err = errors.Join(err, failed)
	}
	if err != nil || p.json.isStdout() || p.html.isStdout() || p.markdown.isStdout() {
		return err
	}
	return peers.Table(p.cmd.OutOrStdout(), r)
}

func (p *peersPapers) close() error {
	return errors.Join(p.json.close(), p.html.close(), p.markdown.close())
}
