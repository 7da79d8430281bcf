package transcript

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// normal gives what differs from run to run names that do not differ.
type normal struct {
	// base is the revision of the store at the beginning, which is named r1.
	base    int64
	leases  map[int64]string
	known   []int64         // all leases, longest ID first
	watches map[watchID]int // their numbers, from 1 in each lane
	lanes   map[string]int  // how many watches each lane has
	// mask gives all leases the same name, and all watches.
	mask bool
}

func (n *normal) know(leases map[int64]bool) {
	for id := range leases {
		n.known = append(n.known, id)
	}
	slices.SortFunc(n.known, func(a, b int64) int { return cmp.Compare(b, a) })
}

func (n *normal) exact() bool { return false }

func (n *normal) lease(id int64) string {
	switch {
	case id == 0:
		return "0"
	case n.mask:
		return "L"
	case n.leases[id] == "":
		n.leases[id] = "L" + strconv.Itoa(len(n.leases)+1)
	}
	return n.leases[id]
}

func (n *normal) rev(revision int64) string {
	if revision <= 0 {
		return "r" + decimal(revision)
	}
	return "r" + decimal(revision-n.base+1)
}

func (n *normal) watch(call int, id int64) string {
	if number := n.watches[watchID{call, id}]; number > 0 {
		return "w" + strconv.Itoa(number)
	}
	return "w"
}

// created names the next watch of a lane.
func (n *normal) created(lane string, id watchID) string {
	n.lanes[lane]++
	n.watches[id] = n.lanes[lane]
	return n.watch(id.call, id.id)
}

// certain is how many digits an ID must have to be replaced anywhere in a text; a shorter one is
// replaced only as the last part of a key.
const certain = 8

func (n *normal) text(s string) string {
	for _, id := range n.known {
		hex := raw{}.lease(id)
		if len(hex) >= certain {
			if strings.Contains(s, hex) {
				s = strings.ReplaceAll(s, hex, n.lease(id))
			}
		} else if before, ok := strings.CutSuffix(s, "/"+hex); ok {
			s = before + "/" + n.lease(id)
		}
	}
	return s
}

// Normalise returns messages in the normal form, which is the same for two runs of one scenario.
// See the package comment for what it omits.
func Normalise(messages []wiretap.Message) []Entry {
	g := gather(messages)
	g.unanswered()
	g.repeated()
	g.attribute()
	n := &normal{
		base: baseOf(g.atoms), leases: make(map[int64]string),
		watches: make(map[watchID]int), lanes: make(map[string]int),
	}
	n.know(g.granted)
	order := g.sorted()
	var entries []Entry
	for _, r := range g.older(order) {
		entries = append(entries, r.entries(n)...)
	}
	lanes, stands := g.lanes(), standing{}
	for _, a := range order {
		said := a.entries(n, lanes)
		stands.change(a, said, n)
		entries = append(entries, said...)
		if granted, ok := answerOf(a).(*etcdserverpb.LeaseGrantResponse); ok && g.renewed[granted.ID] != nil {
			entries = append(entries, g.renewed[granted.ID].entries(n)...)
		}
	}
	return entries
}

// baseOf returns the revision of the store before the first message.
func baseOf(atoms []*atom) int64 {
	base := int64(unanswered)
	for _, a := range atoms {
		_, revokes := requestOf(a).(*etcdserverpb.LeaseRevokeRequest) // which may have removed nothing
		switch {
		case a.rev == 0:
		case revokes && len(a.told) == 0:
			base = min(base, a.rev)
		case a.rank == rankWrite || a.rank == rankOutside:
			base = min(base, a.rev-1)
		default:
			base = min(base, a.rev)
		}
	}
	return base
}

func (a *atom) entries(n *normal, lanes map[string]int) []Entry {
	created := ""
	if w, ok := requestOf(a).(*etcdserverpb.WatchRequest); ok && w.GetCreateRequest() != nil {
		created = n.created(a.lane, a.watch)
	}
	var entries []Entry
	for _, m := range []*wiretap.Message{a.ask, a.answer} {
		if m != nil {
			entries = append(entries, say(*m, created, n)...)
		}
	}
	slices.SortStableFunc(a.told, func(x, y told) int {
		return cmp.Or(cmp.Compare(lanes[x.lane], lanes[y.lane]), cmp.Compare(n.watches[x.watch], n.watches[y.watch]))
	})
	for _, t := range a.told {
		entries = append(entries, Entry{
			Lane: t.lane, Kind: Event, Verb: "Watch",
			Parts: []string{n.watch(t.watch.call, t.watch.id) + " " + sayEvent(t.event, n)},
		})
	}
	return entries
}
