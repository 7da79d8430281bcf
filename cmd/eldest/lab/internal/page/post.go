package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// maxBody bounds the body of a POST.
const maxBody = 1 << 20

// wrongError is an error of the request itself, with the status of the answer.
type wrongError struct {
	status int
	text   string
}

func (e *wrongError) Error() string { return e.text }

// post returns a handler that reads a T and does what the client asks.
func post[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, err := read[T](w, r)
		if err == nil {
			err = do(asked)
		}
		var wrong *wrongError
		switch {
		case err == nil:
			answer(w, http.StatusOK, struct{}{})
		case errors.As(err, &wrong):
			answer(w, wrong.status, failure{err.Error()})
		case errors.Is(err, feed.ErrRefused):
			answer(w, http.StatusConflict, failure{err.Error()})
		default:
			answer(w, http.StatusInternalServerError, failure{err.Error()})
		}
	}
}

type failure struct {
	Error string `json:"error"`
}

// read reads the body of a request. Its errors are *wrongError.
func read[T any](w http.ResponseWriter, r *http.Request) (asked T, err error) {
	// A form of another site cannot have this type.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return asked, &wrongError{http.StatusUnsupportedMediaType, "the body must be JSON, with Content-Type application/json"}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // a body that comes too slowly fails below
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	err = feed.Decode(http.MaxBytesReader(w, r.Body, maxBody), &asked)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return asked, &wrongError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody)}
	case err != nil:
		return asked, &wrongError{http.StatusBadRequest, "the body is invalid: " + err.Error()}
	}
	return asked, nil
}

// answer writes a JSON value. Its text is never markup for a browser, which does not sniff.
func answer(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	writing(w)
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client may have gone
}

// writing bounds the time in which a client reads an answer.
func writing(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}
