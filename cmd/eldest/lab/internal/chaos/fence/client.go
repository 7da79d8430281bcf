package fence

import (
	"bufio"
	"fmt"
	"net"
	"time"
)

// patience bounds a request: the store does next to nothing.
const patience = 2 * time.Second

// Client asks a store. It is for one goroutine at a time.
type Client struct {
	address string
	conn    net.Conn
	lines   *bufio.Scanner
}

// Dial returns a client. It sends nothing; each request connects if need be.
func Dial(address string) *Client { return &Client{address: address} }

// Write offers a token, and blocks until the store has decided, for two seconds at most.
// It reports whether the store accepted. After an error that is not known, and the
// connection is made anew.
func (c *Client) Write(who string, token int64) (accepted bool, err error) {
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.address, patience); err != nil {
			c.conn = nil
			return false, err
		}
		c.lines = bufio.NewScanner(c.conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(c.conn, "%d %s\n", token, who); err != nil {
		return false, err
	}
	if !c.lines.Scan() {
		return false, fmt.Errorf("fence: no answer: %w", c.lines.Err())
	}
	return c.lines.Text() == "ok", nil
}

// Close ends the connection. A client may be used again afterwards.
func (c *Client) Close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is under way
		c.conn = nil
	}
}
