package benchpage

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

//go:embed page.html.tmpl page.css page.js
var sources embed.FS

var pageTemplate = template.Must(template.ParseFS(sources, "page.html.tmpl"))

// page is all that the template shows.
type page struct {
	CSS      template.CSS
	JS       template.JS
	Title    string
	Chapters []chapter
}

// chapter is one run.
type chapter struct {
	ID, Scenario, Summary string
	Facts                 []fact
	Command, Incomplete   string
	Legend                []key
	Base, Floor           string
	// Bounded says that there is a bound.
	Bounded    bool
	Terms      []fact
	Groups     []tableGroup
	Complaints []string
	pictures
}

// fact is one line of the set-up, or a word and what it means.
type fact struct{ Name, Value string }

// key says whose a colour is.
type key struct {
	Name   string
	Colour template.CSS
}

// tableGroup is one group of the table.
type tableGroup struct {
	Title, Unit string
	Rows        []tableRow
	// Bound is "" if there is none.
	Bound string
}

type tableRow struct {
	key
	figures.Cells
	Rounds, Errors           int
	VsBase, VsFloor, VsBound string
	// Bar is what is typical as a part of the largest in the group, in percent.
	Bar template.CSS
}

// Write writes the page for runs, in their order. There must be one at least.
func Write(w io.Writer, runs []figures.Run) error {
	css, err := sources.ReadFile("page.css")
	if err != nil {
		return err
	}
	js, err := sources.ReadFile("page.js")
	if err != nil {
		return err
	}
	// Both are ours.
	p := page{CSS: template.CSS(css), JS: template.JS(js), Title: "Elections on etcd, measured"}
	colours := newPalette(contenders(runs))
	for i := range runs {
		p.Chapters = append(p.Chapters, newChapter(&runs[i], i, colours))
	}
	if len(runs) == 1 {
		p.Title = "Elections on etcd: " + runs[0].Scenario
	}
	return pageTemplate.Execute(w, p)
}

// contenders are all that have results, in the order in which they are met.
func contenders(runs []figures.Run) []string {
	var names []string
	for i := range runs {
		for j := range runs[i].Results {
			if name := runs[i].Results[j].Contender; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func newChapter(run *figures.Run, i int, colours palette) chapter {
	c := chapter{
		ID: fmt.Sprintf("run-%d", i+1), Scenario: run.Scenario, Summary: run.Summary,
		Command: run.Setup.Command, Incomplete: run.Incomplete, Facts: facts(run), Complaints: run.Complaints(),
	}
	for _, name := range contenders([]figures.Run{*run}) {
		c.Legend = append(c.Legend, key{name, template.CSS(colours[name].variable())})
	}
	for _, t := range run.Terms() {
		c.Terms = append(c.Terms, fact{t.Name, figures.Explain(t)})
	}
	c.Base, c.Floor = run.Comparison()
	c.Bounded = run.Bounded()
	groups := run.Groups()
	c.pictures = newPictures(groups, c.Base, colours)
	for i := range groups {
		c.Groups = append(c.Groups, newTableGroup(&groups[i], c.Base, c.Floor, colours))
	}
	return c
}

// facts is the set-up.
func facts(run *figures.Run) []fact {
	var all []fact
	add := func(name, value string) {
		if value != "" && value != "0" {
			all = append(all, fact{name, value})
		}
	}
	add("Date", run.Time.UTC().Format("2006-01-02 15:04 UTC"))
	add("Took", (time.Duration(run.Seconds) * time.Second).String())
	add("etcd", run.Etcd)
	add("Members", strconv.Itoa(run.Members))
	add("Storage", run.Setup.Storage)
	add("Load", strings.TrimPrefix(fmt.Sprintf("%d writes/s", run.Setup.Load), "0 writes/s"))
	for i, remark := range run.Remarks() {
		add(fmt.Sprintf("Note %d", i+1), remark)
	}
	add("Worker processes", strconv.Itoa(run.Setup.Processes))
	add("Warm-up", story.Count(run.Setup.Warmup, "turn"))
	add("Go", run.Go)
	add("System", run.Setup.OS+"/"+run.Setup.Arch)
	add("CPUs", strconv.Itoa(run.Setup.CPUs))
	add("CPU", run.Setup.CPU)
	add("eldest", run.Setup.Eldest)
	return all
}

func newTableGroup(g *figures.Group, base, floor string, colours palette) tableGroup {
	scale := g.Scale()
	t := tableGroup{Title: g.Title(), Unit: scale.Unit}
	if g.Bound > 0 {
		t.Bound = scale.Show(g.Bound)
	}
	most := 0.0
	for _, r := range g.Results {
		most = max(most, r.Typical())
	}
	for _, r := range g.Results {
		row := tableRow{
			key: key{r.Contender, template.CSS(colours[r.Contender].variable())}, Cells: g.Cells(r),
			Rounds: r.Rounds, Errors: r.Errors,
			VsBase:  figures.ShownRatio(figures.Ratio(r, g.Of(base))),
			VsFloor: figures.ShownRatio(figures.Ratio(r, g.Of(floor))),
			VsBound: figures.ShownRatio(g.AgainstBound(r)),
		}
		if typical := r.Typical(); r.Measured() && typical > 0 {
			row.Bar = template.CSS(fmt.Sprintf("%.1f%%", 100*typical/most))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
