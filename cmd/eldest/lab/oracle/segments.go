package oracle

import "github.com/anishathalye/porcupine"

// segments cuts a history where the state of the register is certain, so that each
// part can be judged by itself. That is so after a read or write that overlapped
// with no other operation: everything before was over, so the value is that
// one's, and the token is the newest of all so far, whatever their order was. Each
// part but the first begins with that state, and but the last has at least enough
// operations.
//
// The cut loses nothing: an order that explains the whole is one of the parts, end
// to end, and the other way round.
func segments(ops []porcupine.Operation, enough int) [][]porcupine.Operation {
	var all [][]porcupine.Operation
	var part []porcupine.Operation
	over := int64(-1)  // when all before this one were over
	newest := int64(0) // token so far
	for i, op := range ops {
		o := op.Input.(operation)
		part = append(part, op)
		newest = max(newest, o.token)
		alone := op.Call > over && (i+1 == len(ops) || ops[i+1].Call > op.Return)
		over = max(over, op.Return)
		if !alone || o.verb == wins || len(part) < enough || i+1 == len(ops) {
			continue
		}
		all = append(all, part)
		part = []porcupine.Operation{{
			ClientId: op.ClientId, Call: op.Return, Return: op.Return,
			Input: operation{id: -1, verb: begins, who: o.who, token: newest, write: o.write},
		}}
	}
	if len(part) > 0 {
		all = append(all, part)
	}
	return all
}
