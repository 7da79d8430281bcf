package metrics

import (
	"fmt"
	"slices"
	"strings"
)

// Rows returns the table of the documentation, made from the code.
func Rows() (rows []string) {
	for _, d := range slices.Concat(definitions, serviceDefinitions) {
		labels := "election"
		for _, l := range d.labels {
			labels += fmt.Sprintf(", %s (%s)", l.name, strings.Join(l.values, ", "))
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", d.name, d.kind, labels, d.help))
	}
	return rows
}
