package metrics

import (
	"fmt"
	"strings"
)

// Rows returns the table of the documentation, as the code has it.
func Rows() (rows []string) {
	for _, d := range definitions {
		labels := "election"
		if d.label != "" {
			labels += fmt.Sprintf(", %s (%s)", d.label, strings.Join(d.values, ", "))
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", d.name, d.kind, labels, d.help))
	}
	return rows
}

// Names returns the names of all metrics.
func Names() (names []string) {
	for _, d := range definitions {
		names = append(names, d.name)
	}
	return names
}
