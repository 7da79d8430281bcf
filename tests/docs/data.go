package docs

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Data finds JSON and YAML that does not parse. A block may contain several documents.
func (r *Repository) Data(p *Page, blocks []marked) []Fault {
	var faults []Fault
	for _, b := range blocks {
		if b.notRun != "" || b.file != "" {
			continue
		}
		var decode interface{ Decode(any) error }
		switch b.language {
		case "json":
			decode = json.NewDecoder(strings.NewReader(b.Text))
		case "yaml":
			decode = yaml.NewDecoder(strings.NewReader(b.Text))
		default:
			continue
		}
		for {
			var document any
			err := decode.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				faults = append(faults, p.fault(b.Line, "parse", "%s: %v", b.language, err))
				break
			}
		}
	}
	return faults
}
