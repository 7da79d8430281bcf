package lab

// chaosHelp and chaosExample are the texts of --help.
const chaosHelp = `Tests elections under faults: participants, each a process of its own, are candidates on
a cluster whose members are processes, too, while a seeded schedule of faults is injected:
killed and stopped processes, partitioned, delayed and lossy networks, lost replies, clocks
that run at the wrong rate, members that are restarted or replaced, and the actions of an
operator. "eldest chaos --faults list" shows them, a sentence each.

Of Eldest's participants three of five have heartbeats, with timeouts of half a second to nine
tenths of the TTL, and every other one has a keeper. The table says how many tenures were
suspended and resumed, how many leaders and waiters were evicted, and how many leases a keeper
revoked. A run that had the occasions and none of these is invalid.

Leaders write a key through the guard, read it, and write with their token to a store
outside etcd that refuses older tokens. All participants report what they do and are told,
with the machine's one clock, and etcd's own history is recorded beside it. Judged is:

  I2        a guarded write committed only while its writer was the leader
  I3        acknowledged writes are there, once; refused ones are not
  I4        each winner was alive and the oldest
  linear    writes and reads are those of one register with tenures
  leading   nobody was certain to lead after a newer leader had won, nor after it was
            stopped for longer than its lease
  tokens    tokens rise from tenure to tenure
  healing   when all was healed, within the TTL and 3 s somebody led, and the queue had
            exactly those that live
  precedes  no write was applied before it was requested, and no read was stale
  G6        observers never reported what was not so, nor went back
  exits     processes ended with the exit code of what became of them
  fence     the store outside never accepted an older token
  left      no lease, key, watch, goroutine or process was left when all had left

Each fault must show that it took effect, or its round is invalid: it proves nothing, and
that is no success. (Where a contender offers nothing that a fault could be done to, as
etcd's package offers no clock to skew, the table says n/a.)

A series is up to --series rounds with one cluster; it ends early with a round after which
the election does not settle. The series have the seeds --seed, --seed + 1, and so on:
what is found in round R of the series with seed S is looked for again by

  eldest chaos --seed S --rounds R

and the same other flags, which repeats the faults, though not the interleaving of processes.
The history of a series with a violation is kept, for programs (history.jsonl), for people
(history.txt) and as a picture of the register (register.html).

Nothing is left behind: all processes end with this one, and their data, which is in memory
where there is such a file system, goes with them. It needs Linux. On two processors a round
takes about a second and a half, and each series five seconds more.

In JSON, "seconds" are seconds, and all other times are nanoseconds; those of a series count
from its beginning.

The first Ctrl-C ends it after healing what is wrong, and reports what it has.

Exit codes: 0 everything held; 1 something was violated; 2 bad usage; 5 nothing was violated,
but a part of the run is invalid; 130 interrupted.
`

const chaosExample = `  eldest chaos
  eldest chaos --faults stop,black-hole,delay --rounds 100 --progress
  eldest chaos --seed 1 --rounds 1000 --json chaos.json --dir histories
  eldest chaos --seed 1 --rounds 1000 --contender concurrency`
