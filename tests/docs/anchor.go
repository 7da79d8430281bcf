package docs

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// slug is the anchor that GitHub gives to a heading: its text in lower case, without characters
// that are not a letter, digit, hyphen or underscore, with a hyphen for each space, and with a
// number if the page has the anchor already. seen counts the anchors, and is changed.
//
// Source: HTML::Pipeline::TableOfContentsFilter of GitHub's html-pipeline.
func slug(heading string, seen map[string]int) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
	name := base
	if n := seen[base]; n > 0 {
		name += "-" + strconv.Itoa(n)
	}
	seen[base]++
	return name
}

var attribute = regexp.MustCompile(`(?i)\b(href|src|srcset|id|name)\s*=\s*"([^"]*)"`)

// html reads the links and anchors in raw HTML.
func (r *reader) html(source string, line int) {
	for _, m := range attribute.FindAllStringSubmatchIndex(source, -1) {
		name, value := strings.ToLower(source[m[2]:m[3]]), source[m[4]:m[5]]
		at := line + strings.Count(source[:m[0]], "\n")
		switch name {
		case "id", "name":
			r.page.Anchors[value] = true
		case "srcset":
			for part := range strings.SplitSeq(value, ",") {
				if fields := strings.Fields(part); len(fields) > 0 {
					r.link(fields[0], at)
				}
			}
		default:
			r.link(value, at)
		}
	}
}
