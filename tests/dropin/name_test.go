package dropin

import "fmt"

// nameRows are about prefixes.
var nameRows = []behaviour{
	{
		what: "prefixes with slashes, empty parts and any bytes are taken as they are",
		holds: func(s *stage) {
			base := s.name
			for _, pfx := range []string{base + "/a/b", base + "/", "/" + base, base + "//x", base + "\xff\xfe", base + "-\x00"} {
				made := s.session(options{})
				e, m := s.newElection(made, pfx), s.newMutex(made, pfx+"-m")
				s.check(e.Campaign(s.within(patience), "v") == nil, "no election %q", pfx)
				s.check(e.Key() == fmt.Sprintf("%s/%x", pfx, made.Lease()), "its key is %q", e.Key())
				resp, err := e.Leader(s.ctx)
				s.check(err == nil && string(resp.Kvs[0].Key) == e.Key(), "another leader in %q", pfx)
				s.check(m.Lock(s.within(patience)) == nil && m.Key() == fmt.Sprintf("%s-m/%x", pfx, made.Lease()), "no mutex %q", pfx)
				s.check(e.Resign(s.ctx) == nil && m.Unlock(s.ctx) == nil, "error")
			}
		},
	},
	{
		what:   "an election does not include elections whose names start with its own and a slash",
		theirs: "the leader of another election is taken for its own",
		holds: func(s *stage) {
			made := s.session(options{})
			outer, inner := s.newElection(made, s.name), s.newElection(s.session(options{}), s.name+"/inner")
			s.lead(inner, "inner")
			_, err := outer.Leader(s.ctx)
			s.check(is(err, s.errNoLeader), "the leader of another election is taken for its own")
			s.check(outer.Campaign(s.within(s.soon), "outer") == nil, "it waits for a candidate of another election")
			resp, err := outer.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "outer", "another leader")
			_, other := s.mutex()
			s.check(is(other.TryLock(s.ctx), s.errLocked), "the mutex of the name is free")
			s.check(outer.Resign(s.ctx) == nil, "error")
			s.check(other.TryLock(s.ctx) == nil && s.owns(other), "the mutex of the name is not free")
		},
	},
	{
		what:   "a resumed election has the prefix of NewElection, and does not include its neighbours",
		theirs: "a neighbour is taken for the leader",
		holds: func(s *stage) {
			neighbour := s.newElection(s.session(options{}), s.name+"-neighbour")
			s.lead(neighbour, "neighbour")
			made, e := s.election()
			s.lead(e, "one")
			r := s.resumeElection(made, s.name, e.Key(), e.Rev())
			s.check(r.Resign(s.ctx) == nil, "error")
			_, err := r.Leader(s.ctx)
			s.check(is(err, s.errNoLeader), "a neighbour is taken for the leader")
			s.check(r.Campaign(s.within(patience), "two") == nil && r.Key() == s.keyOf(made), "its key is %q", r.Key())
		},
	},
	{
		what: "a resumed election that is named with the slash which etcd's package needs is the same one",
		holds: func(s *stage) {
			made, e := s.election()
			s.lead(e, "one")
			r := s.resumeElection(made, s.name+"/", e.Key(), e.Rev())
			resp, err := r.Leader(s.ctx)
			s.check(err == nil && string(resp.Kvs[0].Value) == "one", "another leader")
			s.check(r.Campaign(s.within(patience), "two") == nil && r.Rev() == e.Rev(), "another key")
			s.check(r.Resign(s.ctx) == nil && len(s.line()) == 0, "keys are left")
		},
	},
}
