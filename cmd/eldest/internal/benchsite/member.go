package benchsite

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
)

// ready is what a member writes once it serves requests.
type ready struct {
	Ready bool   `json:"ready"`
	Name  string `json:"name"`
}

// RunMember is all that a member's process does. It blocks until the member fails or ctx
// ends; at the end of in it ends the process at once, in the middle of whatever goes on.
func RunMember(ctx context.Context, in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the member's config: %w", err)
	}
	var cfg devcluster.MemberConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return fmt.Errorf("the member's config: %w", err)
	}
	// Before the member starts: the parent may die at any time.
	go func() {
		_, _ = io.Copy(io.Discard, r)
		os.Exit(0)
	}()
	m, err := devcluster.StartMember(cfg)
	if err != nil {
		return err
	}
	defer m.Stop()
	if err := m.Ready(ctx); err != nil {
		return fmt.Errorf("member %s: %w", cfg.Name, err)
	}
	if err := json.NewEncoder(out).Encode(ready{Ready: true, Name: cfg.Name}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-m.Done():
		return fmt.Errorf("member %s stopped by itself", cfg.Name)
	}
}
