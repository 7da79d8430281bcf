package transcript

import (
	"encoding/json"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// object is an entry in JSON.
type object struct {
	TimeMS     *float64        `json:"time_ms,omitempty"`
	Kind       wiretap.Kind    `json:"kind"`
	Lane       string          `json:"lane,omitempty"`
	Connection int             `json:"connection,omitempty"`
	Call       int             `json:"call,omitempty"`
	Method     string          `json:"method,omitempty"`
	Text       string          `json:"text"`
	TookMS     float64         `json:"took_ms,omitempty"`
	Lost       bool            `json:"lost,omitempty"`
	Code       string          `json:"code,omitempty"`
	Error      string          `json:"error,omitempty"`
	Message    json.RawMessage `json:"message,omitempty"`
}

// newObject returns an entry, without what only a live transcript has.
func newObject(e Entry) object {
	o := object{Kind: e.Kind, Lane: e.Lane, Text: e.Text(), Lost: e.Lost}
	if e.Kind != wiretap.Note {
		o.Method = e.Verb
	}
	return o
}

// JSON writes a message and its entries, one object a line. An answer with several events gives
// several lines, the first of which has the message.
func JSON(out io.Writer, m wiretap.Message, entries []Entry) error {
	body, err := Body(m)
	if err != nil {
		return err
	}
	objects := make([]object, len(entries))
	for i, e := range entries {
		o, at := newObject(e), milliseconds(e.At)
		o.TimeMS, o.Connection, o.Call, o.Method, o.TookMS = &at, e.Connection, e.Call, m.Method, milliseconds(e.Took)
		if m.Status != nil {
			o.Code, o.Error = m.Status.Code().String(), m.Status.Message()
		}
		objects[i] = o
	}
	objects[0].Message = body
	return write(out, objects)
}

// PrintJSON writes a normal form, one object a line.
func PrintJSON(out io.Writer, entries []Entry) error {
	objects := make([]object, len(entries))
	for i, e := range entries {
		objects[i] = newObject(e)
	}
	return write(out, objects)
}

// write writes all objects at once.
func write(out io.Writer, objects []object) error {
	var b strings.Builder
	for _, o := range objects {
		b.WriteString(cli.JSONLine(o))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Body returns the whole message as JSON, with etcd's names of the fields; nil if it has none or its
// type is unknown. Passwords and tokens are not in it.
func Body(m wiretap.Message) (json.RawMessage, error) {
	if m.Body == nil {
		return nil, nil
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Body)
}
