package feed

import (
	"encoding/json"
	"errors"
	"io"
)

// Decode reads one JSON value, an action or a scenario, and nothing after it. Unknown fields are errors.
func Decode(from io.Reader, into any) error {
	body := json.NewDecoder(from)
	body.DisallowUnknownFields()
	if err := body.Decode(into); err != nil {
		return err
	}
	if _, more := body.Token(); !errors.Is(more, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}
