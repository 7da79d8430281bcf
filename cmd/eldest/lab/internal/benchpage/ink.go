package benchpage

import (
	"fmt"
	"image/color"
	"strings"
)

// ink is a colour of a picture: a placeholder while it is drawn, and a CSS variable
// in the page.
type ink uint8

// The inks that are no contender's.
const (
	inkText ink = iota + 1
	inkMuted
	inkGrid
	inkAxis
	inkSurface
	firstHue
)

// names are the variables of the inks before firstHue.
var names = map[ink]string{inkText: "ink", inkMuted: "muted", inkGrid: "grid", inkAxis: "axis", inkSurface: "surface"}

// hues are whose the colours are, in the order of the variables --hue-0, --hue-1, ...
// Others get what is left, in the order in which they are met.
var hues = []string{"eldest", "concurrency", "herd", "floor", "", "", "", ""}

// Color is the placeholder: nothing else in a picture has such a colour.
func (i ink) Color() color.Color { return color.RGBA{R: 1, G: 2, B: uint8(i), A: 255} }

// variable is the ink in CSS.
func (i ink) variable() string {
	if i >= firstHue {
		return fmt.Sprintf("var(--hue-%d)", i-firstHue)
	}
	return "var(--" + names[i] + ")"
}

// dyes replaces all placeholders by variables.
var dyes = func() *strings.Replacer {
	var pairs []string
	for i := inkText; int(i) < int(firstHue)+len(hues); i++ {
		pairs = append(pairs, fmt.Sprintf("#0102%02X", uint8(i)), i.variable())
	}
	return strings.NewReplacer(pairs...)
}()

// palette gives each contender of a page its ink.
type palette map[string]ink

func newPalette(contenders []string) palette {
	p := palette{}
	taken := map[ink]bool{}
	for i, name := range hues {
		if name != "" {
			p[name] = firstHue + ink(i)
			taken[p[name]] = true
		}
	}
	for _, name := range contenders {
		if _, ok := p[name]; ok {
			continue
		}
		p[name] = inkMuted // for more than there are colours
		for i := range hues {
			if free := firstHue + ink(i); !taken[free] {
				p[name], taken[free] = free, true
				break
			}
		}
	}
	return p
}
