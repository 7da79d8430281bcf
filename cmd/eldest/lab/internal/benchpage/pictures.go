package benchpage

import (
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// picture is one of the page's, with a title and what its script needs.
type picture struct {
	Title string
	SVG   template.HTML
	Hover string
}

// pictures are those of one run.
type pictures struct {
	Ratios  *picture
	Scaling []picture
	// Grows is what the pictures of scaling are about: N, or the TTL.
	Grows string
	// Percentiles are those of the largest Ns, More the others'.
	Percentiles, More []picture
}

func newPictures(groups []figures.Group, base string, colours palette) pictures {
	var all pictures
	if p, ok := ratios(groups, base, colours); ok {
		all.Ratios = &p
	}
	grown := seriesOf(groups)
	for _, s := range grown {
		all.Grows = s.size()
		if p, ok := scaling(s, colours); ok {
			all.Scaling = append(all.Scaling, p)
		}
	}
	for i := range groups {
		g := &groups[i]
		p, ok := percentiles(g, colours)
		switch {
		case !ok:
		case slices.ContainsFunc(grown, func(s series) bool {
			return s.regime == g.Regime && s.metric == g.Metric && s.largest() != g.N
		}):
			all.More = append(all.More, p)
		default:
			all.Percentiles = append(all.Percentiles, p)
		}
	}
	return all
}

// File is a picture that stands for itself.
type File struct {
	// Name is made of the scenario and the title, and ends in ".svg".
	Name string
	SVG  string
}

// Files returns the pictures of all runs as files, for documents that are not this page.
// They serve light and dark screens, too. Two runs of one scenario have the same names.
func Files(runs []figures.Run) ([]File, error) {
	css, err := sources.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	// The variables are what stands before the first rule for all elements.
	variables, _, _ := strings.Cut(string(css), "* {")
	style := "<style>" + variables + "</style><rect width=\"100%\" height=\"100%\" style=\"fill:var(--surface)\"/>"
	colours := newPalette(contenders(runs))
	var files []File
	for i := range runs {
		run := &runs[i]
		add := func(kind string, p picture) {
			text := strings.Replace(string(p.SVG), ">", ">"+style, 1) // after the first tag
			files = append(files, File{fileName(run.Scenario, kind, p.Title), text})
		}
		base, _ := run.Comparison()
		all := newPictures(run.Groups(), base, colours)
		if all.Ratios != nil {
			add("ratios", picture{SVG: all.Ratios.SVG})
		}
		for _, p := range all.Scaling {
			add("scaling", p)
		}
		for _, p := range slices.Concat(all.Percentiles, all.More) {
			add("percentiles", p)
		}
	}
	return files, nil
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// longest is how much of a title is in a file's name: file systems take 255 bytes.
const longest = 200

// fileName has nothing in it that a shell or a URL would take for something else.
func fileName(parts ...string) string {
	name := unfit.ReplaceAllString(strings.ToLower(strings.Join(parts, " ")), "-")
	return strings.Trim(name[:min(len(name), longest)], "-") + ".svg"
}
