package transcript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// names are what leases, watches and revisions are called in a text.
type names struct {
	// leases has the leases of the normal form, in hexadecimal, and their numbers; 0 means none yet.
	// Until numbering is set, none get numbers: all are L, and all watches w.
	leases    map[string]int
	numbering bool
	numbered  int
	// watches has the numbers of watches by the requests that created them, and created how many
	// watches each lane has.
	watches map[*wiretap.Message]int
	created map[string]int
	// before is how many revisions are not counted.
	before int64
}

// unchanged are etcd's own names.
var unchanged = &names{}

// newNames returns the names of the normal form of some messages.
func newNames(messages []wiretap.Message) *names {
	n := &names{leases: map[string]int{}, watches: map[*wiretap.Message]int{}, created: map[string]int{}}
	for i := range messages {
		n.entries(&messages[i]) // which collects the leases
	}
	return n
}

func (n *names) normal() bool { return n.leases != nil }

func (n *names) revision(revision int64) string {
	if revision > 0 {
		revision -= n.before
	}
	return fmt.Sprintf("r%d", revision)
}

// lease returns the name of a lease; "0" means none.
func (n *names) lease(lease int64) string {
	hex := strconv.FormatInt(lease, 16)
	if n.normal() && !n.numbering && lease != 0 {
		n.leases[hex] = 0
	}
	return n.word(hex)
}

// word returns the name of a word, if it is a known lease, and otherwise the word.
func (n *names) word(word string) string {
	number, known := n.leases[word]
	switch {
	case !known:
		return word
	case !n.numbering:
		return "L"
	case number == 0:
		n.numbered++
		number = n.numbered
		n.leases[word] = number
	}
	return fmt.Sprintf("L%d", number)
}

// words are what may be a lease in a text. A short one is taken for a lease only at the end of a key.
var words = regexp.MustCompile(`[0-9a-f]{8,}|/[0-9a-f]+$`)

// text returns a text with the names of leases.
func (n *names) text(text string) string {
	return words.ReplaceAllStringFunc(text, func(found string) string {
		word := strings.TrimPrefix(found, "/")
		return strings.TrimSuffix(found, word) + n.word(word)
	})
}

func (n *names) key(key []byte) string     { return n.quote(string(key), 96) }
func (n *names) value(value []byte) string { return n.quote(string(value), 48) }

// quote quotes a text as in Go, so that it cannot control a terminal. Of a long one, only the first
// bytes are shown.
func (n *names) quote(text string, shown int) string {
	text = n.text(text)
	if len(text) <= shown {
		return strconv.Quote(text)
	}
	for shown > 0 && !utf8.RuneStart(text[shown]) {
		shown--
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:shown], len(text))
}

// watch returns the name of the watch that a request created; no other request has a name.
func (n *names) watch(request *wiretap.Message) string {
	if number := n.watchNumber(request); number > 0 {
		return fmt.Sprintf("w%d", number)
	}
	return "w"
}

// watchNumber returns the number of a watch in its lane, or 0 if it has none.
func (n *names) watchNumber(request *wiretap.Message) int {
	if request == nil || !n.numbering {
		return 0
	}
	if _, creates := request.Body.(*etcdserverpb.WatchRequest); creates && n.watches[request] == 0 {
		n.created[request.Lane]++
		n.watches[request] = n.created[request.Lane]
	}
	return n.watches[request]
}
