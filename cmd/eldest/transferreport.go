package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/transfer"
)

// member is a candidate in the report of a transfer: who, in which life.
type member struct {
	Key   string       `json:"key"`
	Token eldest.Token `json:"token"`
	// NewToken is that of the place which it stepped back to.
	NewToken eldest.Token `json:"new_token,omitempty"`
	value    []byte
}

// handover is what "eldest transfer" tells. It is the object of --json.
type handover struct {
	Election string `json:"election"`
	Target   string `json:"target"`
	Order    string `json:"order"`
	DryRun   bool   `json:"dry_run"`
	// Done says that the target was seen to lead, or leads already (AlreadyLed).
	Done       bool `json:"done"`
	AlreadyLed bool `json:"already_led,omitempty"`
	// Leader is who is to retire, Back who are to step back, in order. Overtaken are those
	// behind whom they fall.
	Leader    *member  `json:"leader,omitempty"`
	Back      []member `json:"back"`
	Overtaken []member `json:"overtaken,omitempty"`
	Foreign   []string `json:"foreign,omitempty"`
	// Moved are those who have stepped back.
	Moved    []member `json:"moved,omitempty"`
	Retired  bool     `json:"retired"`
	NowLeads *member  `json:"now_leads,omitempty"`
	// Error is why it was not done, Reason the word for a refusal, and Who whom that is
	// about.
	Error  string   `json:"error,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Who    []member `json:"who,omitempty"`

	// planned says that there is a plan to show.
	planned bool
	target  member
}

func memberOf(c eldest.Candidate) member { return member{Key: c.Key, Token: c.Token, value: c.Value} }

func membersOf(candidates []eldest.Candidate) []member {
	all := make([]member, len(candidates)) // never null
	for i, c := range candidates {
		all[i] = memberOf(c)
	}
	return all
}

// takePlan notes what is to be done; ok says that it can be.
func (h *handover) takePlan(p transfer.Plan, ok bool) {
	if p.Leader.Token != 0 {
		leader := memberOf(p.Leader)
		h.Leader = &leader
	}
	h.Back, h.Overtaken, h.Foreign = membersOf(p.Back), membersOf(p.Overtaken), p.Foreign
	h.target, h.planned = memberOf(p.Target), ok
}

// takeResult notes what was done. The plan that was carried out is a newer one.
func (h *handover) takeResult(r transfer.Result, err error) {
	h.takePlan(r.Plan, r.Plan.Target.Token != 0)
	for _, m := range r.Moved {
		moved := memberOf(m.Candidate)
		moved.NewToken = m.Token
		h.Moved = append(h.Moved, moved)
	}
	h.Retired = r.Retired
	if r.Leader.Token != 0 {
		leader := memberOf(r.Leader)
		h.NowLeads = &leader
	}
	h.Done = err == nil
}

// ended notes why it was not done; nil is nothing.
func (h *handover) ended(err error) {
	h.Done = h.Done || h.AlreadyLed
	if err == nil {
		return
	}
	h.Error = connect.Because(err)
	var refusal *transfer.Refusal
	if errors.As(err, &refusal) {
		h.Reason, h.Who = string(refusal.Reason), membersOf(refusal.Who)
	}
}

// print writes the object, or words and a table for people.
func (h *handover) print(w io.Writer, asJSON bool) error {
	if asJSON {
		if h.Back == nil {
			h.Back = []member{}
		}
		_, err := io.WriteString(w, jsonLine(h))
		return err
	}
	var b strings.Builder
	switch {
	case h.AlreadyLed:
		fmt.Fprintf(&b, "%s leads already\n", cli.Printable(h.Target))
	case h.DryRun:
		fmt.Fprintf(&b, "This would hand %s to %s:\n", cli.Printable(h.Election), cli.Printable(h.Target))
		h.table(&b)
	default:
		for _, m := range h.Moved {
			fmt.Fprintf(&b, "%s stepped back: its token was %d and is %d\n", cli.Printable(m.Key), m.Token, m.NewToken)
		}
		if h.Retired {
			fmt.Fprintf(&b, "%s retired with token %d\n", cli.Printable(h.Leader.Key), h.Leader.Token)
		}
		if h.NowLeads != nil {
			fmt.Fprintf(&b, "%s leads with token %d\n", cli.Printable(h.NowLeads.Key), h.NowLeads.Token)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table lists who is to do what, in order.
func (h *handover) table(b *strings.Builder) {
	tw := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	row := func(what string, m member) {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\n", what, cli.Printable(m.Key), m.Token, shownValue(m.value))
	}
	fmt.Fprintln(tw, "WHAT\tKEY\tTOKEN\tVALUE")
	for _, m := range h.Back {
		row("steps back", m)
	}
	row("retires", *h.Leader)
	row("leads", h.target)
	_ = tw.Flush()
	if len(h.Overtaken) > 0 {
		fmt.Fprintf(b, "In front of those who step back there would then be: %s\n", keysOf(h.Overtaken))
	}
	if len(h.Foreign) > 0 {
		foreign := make([]string, len(h.Foreign))
		for i, key := range h.Foreign {
			foreign[i] = cli.Printable(key)
		}
		fmt.Fprintf(b, "Keys that are no candidates', and may hold up programs of etcd's own package: %s\n", strings.Join(foreign, ", "))
	}
}
