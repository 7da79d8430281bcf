package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// ErrForeign is returned by Read for JSON that is not a document of this package.
var ErrForeign = errors.New("not a benchmark's JSON")

// Write writes one run as one object, and any other number as {"runs": [...]}; see Encode.
func Write(w io.Writer, runs []*bench.Report) error {
	var document any = map[string][]*bench.Report{"runs": append([]*bench.Report{}, runs...)} // never null
	if len(runs) == 1 {
		document = runs[0]
	}
	return Encode(w, document)
}

// Encode writes a document as JSON. Control sequences of terminals are escaped.
func Encode(w io.Writer, document any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return err
	}
	_, err := io.WriteString(w, plain.JSON(b.String()))
	return err
}

// Read reads all objects to the end, each one run or several. A document may come from any source:
// texts in it that cannot be shown as they are have been quoted.
func Read(r io.Reader) (all []*bench.Report, err error) {
	for dec := json.NewDecoder(r); ; {
		var object struct {
			bench.Report
			Runs []*bench.Report `json:"runs"`
		}
		switch err := dec.Decode(&object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrForeign, err)
		case object.Runs == nil:
			object.Runs = []*bench.Report{&object.Report}
		}
		for _, run := range object.Runs {
			if run == nil || run.Scenario == "" {
				return nil, fmt.Errorf("%w: it names no scenario", ErrForeign)
			}
			plain.Texts(run)
			all = append(all, run)
		}
	}
}
