package docs

import (
	"bytes"
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// Code has the packages of the workspace as the compiler sees them.
type Code struct {
	// known are the packages that a name can mean: packages of this repository, or else the
	// standard library's or those in the table below.
	known map[string][]string
	// ours are the packages of this repository, by their name.
	ours map[string]string

	// mu is held during each use of imported packages: they are read lazily.
	mu       sync.Mutex
	exports  map[string]string
	importer types.Importer
}

// Module is the path of the root module.
const Module = "github.com/eldest-io/eldest"

// others are packages of other modules that pages use, by the names they use.
var others = map[string]string{
	"clientv3":    "go.etcd.io/etcd/client/v3",
	"namespace":   "go.etcd.io/etcd/client/v3/namespace",
	"rpctypes":    "go.etcd.io/etcd/api/v3/v3rpc/rpctypes",
	"grpc":        "google.golang.org/grpc",
	"codes":       "google.golang.org/grpc/codes",
	"status":      "google.golang.org/grpc/status",
	"metadata":    "google.golang.org/grpc/metadata",
	"trace":       "go.opentelemetry.io/otel/trace",
	"backoff":     "google.golang.org/grpc/backoff",
	"credentials": "google.golang.org/grpc/credentials",
	"keepalive":   "google.golang.org/grpc/keepalive",
	"prometheus":  "github.com/prometheus/client_golang/prometheus",
}

// LoadCode builds the packages that pages usually import, which takes seconds if they have been
// built before. It ends with ctx.
func LoadCode(ctx context.Context, r *Repository) (*Code, error) {
	c := &Code{known: map[string][]string{"rand": {"crypto/rand", "math/rand/v2"}}, ours: map[string]string{}, exports: map[string]string{}}
	out, err := golist(ctx, r.Root, "-f", `{{if ne .Name "main"}}{{.Name}} {{.ImportPath}}{{end}}`, "std", Module+"/...")
	if err != nil {
		return nil, err
	}
	listed := slices.Collect(maps.Values(others))
	for line := range strings.Lines(out) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		inside := strings.TrimPrefix(path, Module)
		switch {
		case strings.Contains(path, "internal/"), strings.HasPrefix(path, "vendor/"), name == "rand":
		case inside == path:
			c.known[name] = append(c.known[name], path)
		case strings.HasPrefix(inside, "/bench"), strings.HasPrefix(inside, "/cmd/"), strings.HasPrefix(inside, "/tests/"), strings.HasPrefix(inside, "/examples/"):
			// Users do not import them.
		case name == "concurrency": // ours or etcd's: the page must specify it
			c.known[name] = []string{path, "go.etcd.io/etcd/client/v3/concurrency"}
			listed = append(listed, path)
		default:
			c.known[name], c.ours[name] = []string{path}, path
			listed = append(listed, path)
		}
	}
	for name, path := range others {
		c.known[name] = []string{path}
	}
	c.importer = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return c.open(context.Background(), r.Root, path)
	})
	return c, c.export(ctx, r.Root, listed...)
}

// export gets the compiler's export data of packages and of all packages that they import.
func (c *Code) export(ctx context.Context, root string, paths ...string) error {
	out, err := golist(ctx, root, append([]string{"-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		c.exports[path] = file
	}
	return nil
}

// open opens the export data of one package. It builds the package if that is necessary.
func (c *Code) open(ctx context.Context, root, path string) (io.ReadCloser, error) {
	if c.exports[path] == "" {
		if err := c.export(ctx, root, path); err != nil {
			return nil, err
		}
	}
	return os.Open(c.exports[path])
}

func golist(ctx context.Context, dir string, args ...string) (string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOFLAGS=")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}

// lastElement is the usual name of a package with this path.
func lastElement(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return parts[len(parts)-2]
	}
	return last
}
