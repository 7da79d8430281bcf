package oracle

import "math"

// I4 checks: at the revision of the winning proof the winner's key was alive and the
// oldest. Where an implementation does not tell the revision of its proof, there
// must be at least one revision between its campaign's start and its win at which
// that was so; where nobody knew the revisions of those, at least one at all.
// The same is asked of a tenure that leads on after it was suspended, from then on.
// [Tokens] checks that tenures start in create-revision order.
func I4(h *History) []Violation {
	var out []Violation
	q := h.queue()
	joined := map[string]int64{}  // revision at the start of the campaign, or of the suspension
	proofs := map[int64][]int64{} // by token
	for _, e := range h.Events {
		if e.Kind == Proven {
			proofs[e.Token] = append(proofs[e.Token], e.Proof)
		}
	}
	for _, e := range h.Events {
		if e.Kind == Joined || e.Kind == Suspended {
			joined[e.Who] = e.Rev
		}
		if e.Kind != Won && e.Kind != Resumed {
			continue
		}
		l, until := q.byToken(e.Token), e.Rev
		proof := int64(0) // the first one that is none; else any
		for _, at := range proofs[e.Token] {
			if proof == 0 || l != nil && q.oldest(at) != l {
				proof = at
			}
		}
		if until == 0 {
			until = math.MaxInt64
		}
		switch {
		case l == nil:
			out = append(out, violated("I4", e.At, "%s %s with token %d, which no key ever had", e.Who, e.Kind, e.Token))
		case proof != 0 && q.oldest(proof) != l:
			out = append(out, violated("I4", e.At, "%s %s with token %d, but was not alive and oldest at its proof, revision %d", e.Who, e.Kind, e.Token, proof))
		case (proof == 0 || e.Kind == Resumed) && !q.leadsWithin(e.Token, joined[e.Who], until):
			out = append(out, violated("I4", e.At, "%s %s with token %d, but was never alive and oldest at any revision of [%d, %d]: a phantom", e.Who, e.Kind, e.Token, joined[e.Who], until))
		}
	}
	return out
}
