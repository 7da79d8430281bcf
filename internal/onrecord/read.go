package onrecord

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Folder is the folder of the runs, below the root of the repository.
const Folder = "docs/data"

// suffix ends the name of a run's file.
const suffix = ".json.gz"

// Read decodes the reference run of that name ("load-2") into a pointer, as json.Unmarshal does;
// root is the root of the repository. It fails if there is no such file, or if the file is not one
// JSON value, whole and compressed. It is safe for concurrent use.
func Read(root, name string, into any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the run %s: %w", name, err)
		}
	}()
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(Folder), name+suffix))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(unzipped) // to the end, where the checksum is
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
