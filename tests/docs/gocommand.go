package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// goCommand returns why the go command would not find an argument: directories of packages, tests
// by their names, flags of tests.
func (r *Repository) goCommand(folder string, args []string) string {
	var packages []string
	var run, runFlag string
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "-run" || arg == "-bench" || arg == "-fuzz":
			if i++; i < len(args) && args[i] != "^$" && args[i] != "." {
				runFlag, run = arg, args[i]
			}
		case strings.HasPrefix(arg, "./") || arg == ".":
			packages = append(packages, path.Join(folder, arg))
			if args[0] == "run" {
				i = len(args) // the next arguments are the program's
			}
		}
	}
	var all []string
	for _, p := range packages {
		dir, below := strings.CutSuffix(p, "...")
		dir = path.Clean(dir)
		if found, isFolder := r.has(dir); !found || !isFolder {
			return "there is no package " + p
		}
		for place, names := range r.tests {
			if place == dir || below && (dir == "." || strings.HasPrefix(place, dir+"/")) {
				all = append(all, names...)
			}
		}
	}
	if len(packages) == 0 {
		for _, names := range r.tests {
			all = append(all, names...)
		}
	}
	if args[0] != "test" {
		return ""
	}
	if why := matches(runFlag, run, all); why != "" {
		return why
	}
	return r.testFlags(packages, args)
}

// matches returns an error text if no test has such a name. Each alternative must have one.
func matches(flag, run string, names []string) string {
	if run == "" {
		return ""
	}
	run, _, _ = strings.Cut(run, "/")
	for part := range strings.SplitSeq(run, "|") {
		pattern, err := regexp.Compile(part)
		if err != nil {
			return err.Error()
		}
		found := false
		for _, name := range names {
			if strings.HasPrefix(name, "Benchmark") == (flag == "-bench") && pattern.MatchString(name) {
				found = true
			}
		}
		if !found {
			return "no test there is called " + part
		}
	}
	return ""
}

var ownFlag = regexp.MustCompile(`^-([a-z]+\.[a-z]+)`)

// testFlags returns an error text if a flag with a dot, as tests declare them, is not declared in
// the package.
func (r *Repository) testFlags(packages, args []string) string {
	for _, arg := range args {
		m := ownFlag.FindStringSubmatch(arg)
		if m == nil {
			continue
		}
		declared := false
		for _, p := range packages {
			files, err := filepath.Glob(filepath.Join(r.Root, filepath.FromSlash(p), "*.go"))
			if err != nil {
				return err.Error()
			}
			for _, file := range files {
				source, err := os.ReadFile(file)
				declared = declared || err == nil && strings.Contains(string(source), `"`+m[1]+`"`)
			}
		}
		if !declared {
			return "no flag of the test is called " + m[1]
		}
	}
	return ""
}
