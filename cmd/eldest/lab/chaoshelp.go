package lab

// chaosHelp and chaosExample are the texts of --help.
const chaosHelp = `Tests elections under faults: participants, each in its own process, are candidates on
a cluster whose members are processes, too, while a seeded schedule of faults is injected:
killed and stopped processes, partitioned, delayed and lossy networks, lost replies, clocks
that run at the wrong rate, members that are restarted or replaced, and the actions of an
operator. "eldest chaos --faults list" describes each of them.

Of Eldest's participants three of five have heartbeats, with timeouts of half a second to nine
tenths of the TTL, and every other one has a keeper. The table shows how many tenures were
suspended and resumed, how many leaders and candidates were evicted, and how many leases a
keeper revoked. A run that had occasions for one of these, but counted none, is invalid.

Leaders write a key through the guard, read it, and write with their token to a store
outside etcd that refuses older tokens. All participants report their actions and
notifications, with the time of the same clock, and etcd's history is recorded too. These
properties are checked:

  I2        a guarded write committed only while its writer was the leader
  I3        acknowledged writes are in etcd, exactly once; refused writes are not
  I4        each winner was alive and the oldest
  linear    writes and reads are those of one register with tenures
  leading   no participant was certain to lead after a newer leader had won, or after it
            was stopped for longer than its lease
  tokens    tokens increase from tenure to tenure
  healing   within the TTL and 3 s after the last fault had ended, a candidate led, and the
            queue contained exactly the live candidates
  precedes  no write was applied before it was requested, and no read was stale
  G6        observers never reported a wrong state, or an older one after a newer one
  exits     processes ended with the expected exit code
  fence     the store outside etcd never accepted an older token
  left      no lease, key, watch, goroutine or process remained after all participants
            had left

Each fault must take effect; otherwise its round is invalid: it proves nothing, and the run
does not succeed. Some faults, as the skew of a clock, apply to Eldest only.

A series is up to --series rounds with one cluster; it ends early after a round from which
the election does not recover. The series have the seeds --seed, --seed + 1, and so on:
a violation in round R of the series with seed S is searched for again with

  eldest chaos --seed S --rounds R

and the same other flags. This repeats the faults, but not the interleaving of processes.
The history of a series with a violation is kept, for programs (history.jsonl), for people
(history.txt) and as a picture of the register (register.html).

All processes end with this one, and their data is deleted; it is in memory if there is such
a file system. The command needs Linux. On two processors a round takes about a second and a
half, and each series five seconds more.

In JSON, "seconds" are seconds, and all other times are nanoseconds; those of a series count
from its beginning.

The first Ctrl-C ends the faults, then the run, and reports the results so far.

Exit codes: 0 no violation; 1 a violation, or an error; 2 bad usage; 5 no violation, but a
part of the run is invalid; 130 interrupted.
`

const chaosExample = `  eldest chaos
  eldest chaos --faults stop,black-hole,delay --rounds 100 --progress
  eldest chaos --seed 1 --rounds 1000 --json chaos.json --dir histories
  eldest chaos --seed 1 --rounds 1000 --contender concurrency`
