package oracle

import (
	"errors"
	"os"
	"path/filepath"
)

// Keep writes a history that is to be looked into to a directory, which must exist:
// history.jsonl for programs ([Load] reads it), history.txt for people, which ends with what
// was found, and register.html, a picture of what Linear saw. What was written before an
// error stays.
func (h *History) Keep(dir, found string) error {
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return err
	}
	if err := errors.Join(h.Store(file), file.Close()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(h.String()+found), 0o644); err != nil {
		return err
	}
	return h.Picture(filepath.Join(dir, "register.html"))
}
