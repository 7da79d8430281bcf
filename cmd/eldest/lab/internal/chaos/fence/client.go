package fence

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// patience bounds a request: the store does next to nothing.
const patience = 2 * time.Second

// Client asks a store.
type Client struct {
	url  string
	http http.Client
}

// Dial returns a client. It sends nothing; a request connects if need be.
func Dial(address string) *Client {
	return &Client{"http://" + address, http.Client{Transport: &http.Transport{}, Timeout: patience}}
}

// Write offers a token, and blocks until the store has decided, for two seconds at most.
// It reports whether the store accepted. After an error that is not known.
func (c *Client) Write(who string, token int64) (accepted bool, err error) {
	resp, err := c.http.PostForm(c.url, url.Values{"who": {who}, "token": {strconv.FormatInt(token, 10)}})
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }() // it is empty
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusConflict:
		return false, nil
	default:
		return false, fmt.Errorf("fence: %s", resp.Status)
	}
}

// Close ends the connection. A client may be used again afterwards.
func (c *Client) Close() { c.http.CloseIdleConnections() }
