package metrics

import (
	"fmt"
	"slices"
	"strings"
)

func all() []*definition { return slices.Concat(definitions, serviceDefinitions) }

// Rows returns the table of the documentation, made from the code.
func Rows() (rows []string) {
	for _, d := range all() {
		labels := "election"
		for _, l := range d.labels {
			labels += fmt.Sprintf(", %s (%s)", l.name, strings.Join(l.values, ", "))
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", d.name, d.kind, labels, d.help))
	}
	return rows
}

// Names returns the names of all metrics.
func Names() (names []string) {
	for _, d := range all() {
		names = append(names, d.name)
	}
	return names
}
