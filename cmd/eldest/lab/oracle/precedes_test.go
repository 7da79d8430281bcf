package oracle

import "testing"

// service is a short history of a service that keeps many registers, in which everything
// holds.
const service = `
grow n1 2
open 3 n1
grow n2 4
grow n3 5
traffic n1 10
drop n1 20
open 21 n2
grow n1 22
traffic n2 30
traffic n2 40
ask w1 n1 append log x
do w1 append log x 46 n2
told w1 done 46 n2
ask w2 n1 append log y
do w2 append log y 47 n2
told w2 open
ask g1 n3 get log
told g1 read w2
ask w3 n1 delete log
do w3 delete log 48 n2
told w3 done 48 n2
ask g2 n3 get log
told g2 missing
ask w4 n3 put log z
told w4 refused
ask w5 n3 put never z
told w5 open
ask g3 n3 get never
told g3 missing
drop n2 55
open 56 n3
traffic n3 60
drop n3 99
`

func TestRegistersByName(t *testing.T) {
	const beforeDrop = "drop n2 55\n"
	extra := func(name, lines string, rule func(*History) []Violation, problem string) ill {
		return ill{name, beforeDrop, lines + beforeDrop, rule, problem}
	}
	rules := []func(*History) []Violation{I2, Rising, Kept, Refusals, Once, I3, Sequence, Fresh, Precedes}
	tales(t, service, rules, []ill{
		extra("an acknowledged write is nowhere", "ask x n2 put b v\ntold x done 49 n2\n", Kept, "write x was acknowledged to n2 and is not there"),
		{"an acknowledged write vanished with its record", "do w1 append log x 46 n2\n", "", Kept, "write w1 was acknowledged to n1 and is not there"},
		extra("the receipt lies about the revision", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 48 n2\n", Kept, "write x was acknowledged at revision 48 with token 4, and is there at 49 with 4"),
		extra("the receipt lies about the tenure", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n1\n", Kept, "with token 22, and is there at 49 with 4"),
		extra("another value was written", "ask x n2 put b v\ndo x put b w 49 n2\ntold x done 49 n2\n", Kept, "write x asked for put b v, and put b w was carried out"),
		extra("another key was written", "ask x n2 put b v\ndo x put c v 49 n2\ntold x done 49 n2\n", Kept, "and put c v was carried out"),
		extra("something else was done", "ask x n2 put b v\ndo x append b v 49 n2\ntold x done 49 n2\n", Kept, "and append b v was carried out"),

		{"the forwarder repeats", "told w2 open\n", "do w2 append log y 47 n2\ntold w2 open\n", Once, "write w2 was applied 2 times, at revision 47 and 47"},
		extra("an acknowledged write was repeated later", "do w1 append log x 49 n2\n", Once, "write w1 was applied 2 times, at revision 46 and 49"),
		extra("nobody asked for it", "do ghost put b v 49 n2\n", Once, "write ghost was applied, at revision 49, and was never sent"),
		{"a refused write was applied", "told w4 refused\n", "do w4 put log z 49 n2\ntold w4 refused\n", Refusals, "write w4 was refused to n3 and applied all the same, at revision 49"},

		{"a deposed leader writes", "traffic n2 30\n", "traffic n2 30\nask x n3 put b v\ndo x put b v 37 n1@2\ntold x open\n", Rising, "write x of token 2 committed at 37 after one of token 4"},
		{"a deposed leader writes before its successor does", "open 21 n2\n", "ask x n3 put b v\ndo x put b v 21 n1@2\ntold x open\nopen 22 n2\n", I2, "write x of token 2 committed at 21 without its key"},
		{"a waiting candidate writes", "traffic n2 30\n", "traffic n2 30\nopen 37 n3@5\nask x n3 put b v\ndo x put b v 38 n3@5\ntold x done 38 n3@5\n", I2, "write x of token 5 committed at 38 while token 4 was older"},
		{"nobody leads, somebody writes", "drop n3 99\n", "drop n3 99\ndo x put b v 100 n3\n", I2, "without its key"},
		{"the key of another life", "open 21 n2\n", "open 21 n2@3\n", I2, "of token 3 committed at 21 without its key"},
		{"the key of somebody else", "open 21 n2\n", "open 21 n3@4\n", I2, "for e/n3, whose token it is not"},
		{"a tenure begins twice", "traffic n2 30\n", "traffic n2 30\nopen 37 n2\n", Rising, "the tenure of token 4 was opened twice"},
		{"a tenure does not begin", "open 21 n2\n", "", Rising, "had not been opened"},
		extra("the data is taken away", "wipe a 49\n", Rising, "the data was deleted at 49"),
		extra("a write in other words", "wipe a 49\n", I3, "the data was deleted at 49"),

		{"an open write need not be seen", "told g1 read w2\n", "told g1 read w1\n", nil, ""},
		{"an open write may be seen", "told w2 open\nask g1 n3 get log\ntold g1 read w2\n", "ask g1 n3 get log\ntold g1 read w2\ntold w2 open\n", nil, ""},
		extra("a deposed leader's read", "ask x n1 get a\ntold x read t40\n", Fresh, `n1 read "t40" of "a" as it was until revision 41, when revision 48 was known already`),
		extra("reads go back", "ask x n1 get log2\ntold x missing\nask y n2 put log2 v\ndo y put log2 v 49 n2\ntold y open\nask z n1 get log2\ntold z read y\nask u n2 get log2\ntold u missing\n", Fresh, `n2 read "" of "log2" as it was until revision 49`),
		extra("a read of what never was", "ask x n1 get a\ntold x read t99\n", Fresh, "which the store never had there"),
		extra("a read of another register", "ask x n1 get b\ntold x read t45\n", Fresh, "which the store never had there"),
		extra("a read of a deletion", "ask x n1 get log\ntold x read w3\n", Fresh, "which the store never had there"),
		extra("it was there and is not found", "ask x n1 get a\ntold x missing\n", Fresh, `n1 read "" of "a" as it was until revision 10`),
		extra("it was there, is not found, and is deleted later", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n2\nask y n1 get b\ntold y missing\nask z n1 delete b\ndo z delete b 50 n2\ntold z done 50 n2\n", Fresh, `n1 read "" of "b" as it was until revision 49, when revision 49 was known already`),
		extra("the delete may be seen before its answer", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n2\nask z n1 delete b\nask y n1 get b\ntold y missing\ndo z delete b 50 n2\ntold z done 50 n2\n", nil, ""),
		extra("a delete does not find what is there", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n2\nask z n1 delete b\ntold z missing\n", Fresh, `n1 read "" of "b" as it was until revision 49`),
		extra("a delete finds nothing, and deletes it", "ask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n2\nask z n1 delete b\ndo z delete b 50 n2\ntold z missing\n", Refusals, "write z was refused to n1 and applied all the same, at revision 50"),
		extra("a delete finds nothing where nothing is", "ask z n1 delete b\ntold z missing\n", nil, ""),
		extra("a read of the future", "ask y n1 get b\ntold y read x\nask x n2 put b v\ndo x put b v 49 n2\ntold x done 49 n2\n", Fresh, `n1 read "x" of "b" as it was from revision 49 on, when that could not be`),
		extra("a read of the future, of another's past", "ask y n1 get b\nask x n2 put b v\ntold y read x\nask z n2 put c v\ndo z put c v 49 n2\ntold z done 49 n2\ndo x put b v 50 n2\ntold x done 50 n2\n", Fresh, "revision 49 was not asked for yet"),
		extra("a read of the future, of the one's after the next's", "ask y n1 get b\nask x n2 put b v\ntold y read x\nask u n2 put c w\nask z n2 put c v\ndo z put c v 49 n2\ndo x put b v 50 n2\ndo u put c w 51 n2\ntold u done 51 n2\ntold z done 49 n2\ntold x done 50 n2\n", Fresh, "revision 49 was not asked for yet"),
		extra("two writes and a read at once", "ask y n1 get b\nask x n2 put b v\nask z n2 put c v\ndo z put c v 49 n2\ndo x put b v 50 n2\ntold y read x\ntold x done 50 n2\ntold z done 49 n2\n", nil, ""),
		extra("the one that was suspended serves what it knew", "ask x n1 get log\ntold x read w1\n", Fresh, "as it was until revision 47, when revision 48 was known already"),

		extra("revisions against the clock", "ask y n2 put b v\ndo y put b v 50 n2\ntold y done 50 n2\nask x n2 put c v\ndo x put c v 49 n2\ntold x done 49 n2\n", Sequence, "write x was applied at revision 49, and was sent when revision 50 was known already"),
		extra("an open write before its request", "ask y n2 put b v\ndo y put b v 50 n2\ntold y done 50 n2\nask x n2 put c v\ndo x put c v 49 n2\ntold x open\n", Sequence, "write x was applied at revision 49"),
		extra("a write was read before its request", "ask x n1 put b v\ndo x put b v 49 n2\ntold x open\nask y n1 get b\ntold y read x\nask z n2 put c v\ndo z put c v 49 n2\ntold z open\n", Sequence, "write z was applied at revision 49"),
	})
}
