package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// columns and rows are the size of the terminal on which the demo is recorded.
const columns, rows = 130, 40

// record runs the demo on a terminal of its own and writes an asciicast. It blocks until the demo
// has ended.
func record(eldest, path string) error {
	cmd := exec.Command(eldest, "demo")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	started := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return err
	}
	defer func() { _ = terminal.Close() }() // all output has been read
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	write := json.NewEncoder(file)
	write.SetEscapeHTML(false)
	err = write.Encode(map[string]any{"version": 2, "width": columns, "height": rows, "command": "eldest demo"})
	buffer := make([]byte, 1<<16)
	for err == nil {
		var n int
		n, err = terminal.Read(buffer)
		if n > 0 {
			if e := write.Encode([]any{float64(time.Since(started).Milliseconds()) / 1000, "o", string(buffer[:n])}); e != nil {
				err = e
			}
		}
	}
	// On Linux, reading from a terminal whose last process has ended fails with EIO.
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		err = nil
	}
	if ended := cmd.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("the demo: %w", ended))
	}
	return errors.Join(err, file.Close())
}
