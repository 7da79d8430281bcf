package lab

// labHelp and labExample are the texts of --help.
const labHelp = `Shows an election in a browser, while it happens, and lets you break it by hand.

It starts an etcd cluster of three members, and candidates, each in its own process, and
serves a page on 127.0.0.1. The page shows the queue with keys, tokens and the time that
each lease has left; which candidate waits for which; etcd's members; a lane for each
candidate, with the time in which it leads, and in which it is sure that it leads; and
every request, answer and event between a candidate and etcd.

On the page candidates are added, asked to resign, killed, stopped and partitioned;
replies are lost, keys deleted and leases revoked, members of etcd killed. Messages can be
held, and released in any order. Lessons say what to try, and what to see. What was done
can be copied as a scenario, and played again, there or with --play.

--kind says what the candidates are, in turn: eldest; heartbeats and keeper, which are
eldest with one of them; concurrency, etcd's own package; herd, in which every candidate
watches all keys. More can be added on the page.

All this needs Linux. With --endpoints it starts nothing, runs on other systems, too, and
shows the elections of an existing cluster: without ELECTION, all those in --namespace,
for which the user must be allowed to read all keys there. The cluster is only read,
unless --write is given: then the page can evict candidates and transfer leadership, as
"eldest evict" and "eldest transfer" do.

The address that is printed has a token, without which nothing is served. With the
address, other users can do what the page can. There is no TLS: give --listen an address
that other machines can reach only in a network that you trust.

It runs until Ctrl-C (or SIGTERM), or for --for; no process and no file remains. A second
signal ends it at once. --json writes one object: event ("serving"), time, address, mode
("sandbox" or "cluster") and endpoints.

Exit codes: 0 after a signal, or when --for is over; 1 failed; 2 bad usage.
`

const labExample = `  eldest lab --open
  eldest lab --participants 4 --kind eldest,concurrency --ttl 10s
  eldest lab --play scenario.json
  eldest lab --endpoints etcd1:2379,etcd2:2379,etcd3:2379
  eldest lab nightly-jobs --endpoints etcd1:2379 --write`
