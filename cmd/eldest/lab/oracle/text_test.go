package oracle

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tick passes between two statements of a text, and is the unit of its times.
const tick = time.Millisecond

// text is a history written as statements between semicolons or line ends. Each is a tick after the one
// before it. Participants a to f have the leases 10 to 15, and use the token of their newest key:
//
//	put a | del a           the store: the key of a is created, with the revision as its token; is deleted
//	write a w | write 2 w   the store: a guarded write named w, by a's token or by another
//	change key=k value=v    the store: any other change, by its fields
//	queue a b               a list of keys
//	a won | a won 2         any event, with a's token or another; "-" is no participant
//	a acked w commit=4      fields have the names that they are stored with; a word alone is a write
//	= a ended               at the instant of the statement before
//	@90 a sure | @90-95 ... at an instant, or between two readings of a clock
//	wait 2000               time passes
//	set ttl=1000            the configuration of the run
//	blind                   events have no revisions
type text struct {
	History
	now    time.Duration
	rev    int64
	blind  bool
	tokens map[string]int64 // newest, by participant
	lives  map[string]int64 // tokens of the keys that exist
}

func write(statements []string) (*History, error) {
	x := &text{rev: 1, tokens: map[string]int64{}, lives: map[string]int64{}}
	x.About = About{Prefix: "e/", Data: "data", TTL: 2000 * tick}
	for _, s := range statements {
		if err := x.statement(strings.Fields(s)); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	slices.SortStableFunc(x.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for i := range x.Events {
		x.Events[i].Seq = i + 1
		if x.blind {
			x.Events[i].Rev = 0
		}
	}
	return &x.History, nil
}

func (x *text) statement(w []string) error {
	x.now += tick
	e := Event{Rev: x.rev}
	if instant, ok := strings.CutPrefix(w[0], "@"); ok {
		from, till, _ := strings.Cut(instant, "-")
		x.now, e.Until, w = time.Duration(number(from))*tick, time.Duration(number(till))*tick, w[1:]
	} else if w[0] == "=" {
		x.now, w = x.now-tick, w[1:]
	}
	e.At = x.now
	c := Change{Rev: x.rev + 1, At: x.now}
	switch w[0] {
	case "wait":
		x.now += time.Duration(number(w[1])) * tick
		return nil
	case "blind":
		x.blind = true
		return nil
	case "set":
		return fields(&x.About, w[1:])
	case "put":
		c.Key, c.Lease = "e/"+w[1], lease(w[1])
		if c.Create = cmp.Or(x.lives[w[1]], c.Rev); c.Create == c.Rev {
			x.tokens[w[1]], x.lives[w[1]] = c.Rev, c.Rev
		}
		return x.change(c, w[2:])
	case "del":
		c.Key, c.Create, c.Deleted = "e/"+w[1], x.lives[w[1]], true
		delete(x.lives, w[1])
		return x.change(c, nil)
	case "write":
		c.Key, c.Value = "data", WriteValue(cmp.Or(number(w[1]), x.tokens[w[1]]), w[2])
		return x.change(c, w[3:])
	case "change":
		return x.change(c, w[1:])
	case "queue":
		e.Kind, e.Keys = Queue, []string{}
		for _, key := range w[1:] {
			e.Keys = append(e.Keys, "e/"+key)
		}
		w = nil
	default:
		e.Kind = Kind(strings.ReplaceAll(w[1], "-", " "))
		if w[0] != "-" {
			e.Who = w[0]
		}
		switch e.Kind {
		case Joined:
			e.Lease, e.Token = lease(w[0]), x.tokens[w[0]]
		case Won, Resumed:
			e.Key, e.Token = "e/"+w[0], x.tokens[w[0]]
		case Read: // with a token only if that is named
		default:
			e.Token = x.tokens[w[0]]
		}
		w = w[2:]
	}
	if !kinds[e.Kind] {
		return fmt.Errorf("no kind of event is called %q", e.Kind)
	}
	err := fields(&e, w)
	x.Events = append(x.Events, e)
	return err
}

func (x *text) change(c Change, w []string) error {
	x.rev++
	err := fields(&c, w)
	x.Changes = append(x.Changes, c)
	return err
}

// fields sets fields by the names with which they are stored. "lost" is a flag, 2 is the token, and any other
// word alone is the name of a write.
func fields(of any, words []string) error {
	v := reflect.ValueOf(of).Elem()
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		field := stored(v, name)
		if !named && (!field.IsValid() || field.Kind() != reflect.Bool) {
			name, value = "write", word
			if number(word) != 0 {
				name = "token"
			}
			field = stored(v, name)
		}
		if !field.IsValid() {
			return fmt.Errorf("no field is called %q", name)
		}
		switch field.Interface().(type) {
		case bool:
			field.SetBool(true)
		case string:
			field.SetString(value)
		case time.Duration:
			field.SetInt(number(value) * int64(tick))
		case []int64:
			var all []int64
			for n := range strings.SplitSeq(value, ",") {
				all = append(all, number(n))
			}
			field.Set(reflect.ValueOf(all))
		default:
			field.SetInt(number(value))
		}
	}
	return nil
}

func stored(v reflect.Value, name string) reflect.Value {
	return v.FieldByNameFunc(func(field string) bool {
		f, _ := v.Type().FieldByName(field)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return tag == name
	})
}

func number(word string) int64 {
	n, _ := strconv.ParseInt(word, 10, 64)
	return n
}

func lease(who string) int64 { return LeaseOf("/" + who) }

// checkers are the checkers that a script can name.
var checkers = map[string]func(*History) []Violation{
	"I1": I1, "I2": I2, "I3": I3, "I4": I4, "I5": I5, "I6": I6, "I7": I7, "Order": Order, "Tokens": Tokens, "Leading": Leading,
	"Precedes": Precedes, "Observations": Observations, "Healing": Healing, "Fence": Fence, "Transfers": Transfers, "Exits": Exits,
	"Leftovers": Leftovers, "Overtaken": Overtaken, "Wakes": Wakes, "InTime": InTime, "Granted": Granted,
	"Kept": Kept, "Judge": (*History).Judge,
	"Linear": func(h *History) []Violation {
		out := found{"linear", linear(h, effort, math.MaxInt)} // in one part, and in as many as possible
		if parts := linear(h, effort, 1); len(parts) != len(out.all) {
			out.add(0, "judged in parts: %v", parts)
		}
		return out.all
	},
}

// Scripts have histories, one per line, and what the named checkers find in each: nothing in those
// that are missing in the answer. "given" names a text that others contain; "name [old] -> [new]"
// is that text with one part replaced. -rewrite writes what is found.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		given := map[string][]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "given" {
				given[d.CmdArgs[0].Key] = statements(given, strings.ReplaceAll(d.Input, "\n", ";"))
				return ""
			}
			var found strings.Builder
			for line := range strings.Lines(d.Input) {
				name, written, _ := strings.Cut(strings.TrimSpace(line), ": ")
				whole, change, ok := strings.Cut(written, " [")
				if ok {
					whole = strings.Join(given[whole], "; ")
					before, after, _ := strings.Cut(strings.TrimSuffix(change, "]"), "] -> [")
					require.Contains(t, whole, before, d.Pos)
					written = strings.Replace(whole, before, after, 1)
				}
				for _, rule := range d.CmdArgs {
					h, err := write(statements(given, written))
					require.NoError(t, err, "%s: %s", d.Pos, name)
					for _, v := range checkers[rule.Key](h) {
						fmt.Fprintf(&found, "%s: %s: %s\n", name, v.Invariant, v.Text)
					}
				}
			}
			return found.String()
		})
	})
}

func statements(given map[string][]string, s string) (all []string) {
	for part := range strings.SplitSeq(s, ";") {
		part = strings.TrimSpace(part)
		if text, ok := given[part]; ok {
			all = append(all, text...)
		} else if part != "" {
			all = append(all, part)
		}
	}
	return all
}
