package transcript

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// line is one line of JSON.
type line struct {
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

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// JSON writes a message and its entries, one object a line. An answer with several events gives
// several lines, the first of which has the message.
func JSON(out io.Writer, m wiretap.Message, entries []Entry) error {
	body, err := Body(m)
	if err != nil {
		return err
	}
	lines := make([]line, len(entries))
	for i, e := range entries {
		at := milliseconds(e.At)
		lines[i] = line{
			TimeMS: &at, Kind: e.Kind, Lane: e.Lane, Connection: e.Connection, Call: e.Call, Method: m.Method,
			Text: e.Text(), TookMS: milliseconds(e.Took), Lost: e.Lost,
		}
		if m.Status != nil {
			if lines[i].Code = m.Status.Code().String(); m.Status.Code() != codes.OK {
				lines[i].Error = m.Status.Message()
			}
		}
	}
	lines[0].Message = body
	return write(out, lines)
}

// Body returns the whole message as JSON, with etcd's names of the fields; nil if it has none or its
// type is unknown. Passwords and tokens are not in it.
func Body(m wiretap.Message) (json.RawMessage, error) {
	if m.Body == nil {
		return nil, nil
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Body)
}

// PrintJSON writes a normal form, one object a line.
func PrintJSON(out io.Writer, entries []Entry) error {
	lines := make([]line, len(entries))
	for i, e := range entries {
		lines[i] = line{Kind: e.Kind, Lane: e.Lane, Text: e.Text(), Lost: e.Lost}
		if e.Kind != wiretap.Note {
			lines[i].Method = e.Verb
		}
	}
	return write(out, lines)
}

// write writes lines at once.
func write(out io.Writer, lines []line) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, plain.JSON(b.String()))
	return err
}
