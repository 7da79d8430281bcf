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
	Kind       Kind            `json:"kind"`
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
	var b bytes.Buffer
	for i, e := range entries {
		at := milliseconds(e.At)
		l := line{
			TimeMS: &at, Kind: e.Kind, Lane: e.Lane, Connection: e.Connection, Call: e.Call, Method: m.Method,
			Text: e.Text(), TookMS: milliseconds(e.Took), Lost: e.Lost,
		}
		if m.Status != nil {
			if l.Code = m.Status.Code().String(); m.Status.Code() != codes.OK {
				l.Error = m.Status.Message()
			}
		}
		if i == 0 {
			body, err := Body(m)
			if err != nil {
				return err
			}
			l.Message = body
		}
		if err := encode(&b, l); err != nil {
			return err
		}
	}
	_, err := out.Write(b.Bytes())
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

// PrintJSON writes a normal form, one object a line.
func PrintJSON(out io.Writer, entries []Entry) error {
	var b bytes.Buffer
	for _, e := range entries {
		l := line{Kind: e.Kind, Lane: e.Lane, Method: e.Verb, Text: e.Text(), Lost: e.Lost}
		if e.Kind == Note {
			l.Method = ""
		}
		if err := encode(&b, l); err != nil {
			return err
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

func encode(b *bytes.Buffer, l line) error {
	var one bytes.Buffer
	enc := json.NewEncoder(&one)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return err
	}
	b.WriteString(plain.JSON(one.String()))
	return nil
}
