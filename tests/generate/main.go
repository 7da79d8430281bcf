// Command generate makes the Go code of the repository's .proto files.
//
//	tests/generate/run          writes all of them
//	tests/generate/run -check   writes nothing; fails if anything would change
//
// It needs only Go: the compiler is a Go module, and so are the two generators; the module of the
// tests, which no other module imports, pins all three.
//
// A Go program registers its messages under the path of their file, and two files with one path are
// an error. Therefore the paths of this repository are eldest/<path in the repository>, which is
// also how the files import each other.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	module = "github.com/eldest-io/eldest"
	prefix = "eldest/"
)

// generators are the plug-ins, each run on each file.
var generators = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	check := flag.Bool("check", false, "write nothing and fail if anything would change")
	root := flag.String("root", "../..", "the repository")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "generate: surplus argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(context.Background(), *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool) error {
	sources, present, err := find(root)
	if err != nil {
		return err
	}
	generated, err := generate(ctx, root, sources)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range present {
		if _, ok := generated[name]; ok {
			continue
		}
		if check {
			errs = append(errs, fmt.Errorf("%s is generated from nothing; run tests/generate/run", name))
			continue
		}
		errs = append(errs, os.Remove(filepath.Join(root, name)))
	}
	for name, content := range generated {
		file := filepath.Join(root, name)
		old, err := os.ReadFile(file)
		switch {
		case err == nil && bytes.Equal(old, content):
		case check:
			errs = append(errs, fmt.Errorf("%s differs from its .proto; run tests/generate/run", name))
		default:
			fmt.Println(name)
			errs = append(errs, os.WriteFile(file, content, 0o644))
		}
	}
	return errors.Join(errs...)
}

// find returns the .proto files and the generated files, relative to root.
func find(root string) (sources, generated []string, err error) {
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && len(base) > 2 && (base[0] == '.' || base == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(base, ".proto"):
			sources = append(sources, relative(root, file))
		case strings.HasSuffix(base, ".pb.go"):
			generated = append(generated, relative(root, file))
		}
		return nil
	})
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("no .proto file in %s", root)
	}
	return sources, generated, err
}

func relative(root, file string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		panic(err) // both come from the same walk
	}
	return filepath.ToSlash(rel)
}

// generate compiles the sources and returns the files that the generators make.
func generate(ctx context.Context, root string, sources []string) (map[string][]byte, error) {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = prefix + source
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(name string) (io.ReadCloser, error) {
				source, ok := strings.CutPrefix(name, prefix)
				if !ok {
					return nil, fs.ErrNotExist
				}
				return os.Open(filepath.Join(root, source))
			},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	// The request contains all imported files, too, each after the files that it imports.
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("module=" + module)}
	seen := make(map[string]bool)
	for _, file := range files {
		add(request, seen, file)
	}
	generated := make(map[string][]byte)
	for _, generator := range generators {
		if err := plugin(ctx, generator, request, generated); err != nil {
			return nil, fmt.Errorf("%s: %w", generator, err)
		}
	}
	return generated, nil
}

// add adds a file to the request, after the files that it imports.
func add(request *pluginpb.CodeGeneratorRequest, seen map[string]bool, file protoreflect.FileDescriptor) {
	if seen[file.Path()] {
		return
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		add(request, seen, imports.Get(i).FileDescriptor)
	}
	request.ProtoFile = append(request.ProtoFile, describe(file))
}

func describe(file protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if result, ok := file.(linker.Result); ok {
		return result.FileDescriptorProto()
	}
	return protoutil.ProtoFromFileDescriptor(file)
}

// plugin runs one generator, which reads protobuf from stdin and writes protobuf to stdout.
func plugin(ctx context.Context, name string, request *pluginpb.CodeGeneratorRequest, generated map[string][]byte) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", name)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	switch err := proto.Unmarshal(output, &response); {
	case err != nil:
		return err
	case response.GetError() != "":
		return errors.New(response.GetError())
	}
	for _, file := range response.GetFile() {
		generated[path.Clean(file.GetName())] = []byte(file.GetContent())
	}
	return nil
}
