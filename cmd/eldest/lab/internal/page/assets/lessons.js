// The lessons: one for each chapter of docs/book, and some (chapter 0) for what breaks when a rule
// is missing. Each has a scenario that prepares it, in the language of feed.Scenario, a question,
// what to try, and what can be seen then. The words are those of the book.
//
// A setup contains only what is the same each time. What the reader does is in "try": nothing there
// has to be done within less than a second, and nothing has to be done within less than two seconds
// for each held message.

// add starts a participant. It takes a while until its key is in the queue, so each one has a
// second before the next.
const add = (kind, rule) => ({ after_ms: 1000, do: "add", kind, ...(rule ? { rule } : {}) });

// queue starts one participant of each kind, in this order: p1, p2, ...
const queue = (...kinds) => kinds.map((kind) => add(kind));

// stopAt makes messages of these kinds wait in the page.
const stopAt = (on, ...breakpoints) => ({ after_ms: 1000, do: "breakpoint", on, breakpoints });

const book = (file) => `docs/book/${file}.md`;

export const lessons = [
  {
    id: "leases",
    title: "Leases",
    chapter: 1,
    question:
      "The leader loses its network. It cannot ask etcd whether it still leads, and etcd cannot tell it. How does each of them know when the leadership ends?",
    setup: { name: "Leases", steps: queue("eldest", "eldest", "eldest") },
    try: [
      "Choose Cut off, or below More: both ways, for p1, which leads.",
      "Watch the time that its lease has left, and its lane.",
      "When another candidate leads, choose Heal for p1.",
      "Then choose Kill for the new leader, and compare.",
    ],
    see: [
      "p1 stops leading about half a second before its lease can end. It counts the 5 seconds from the moment before it sent the last renewal that was confirmed, less a margin of a tenth.",
      "etcd counts from the moment at which it handled that renewal, which is later. Then it deletes the key of p1. It looks for expired leases every half second.",
      "p2 leads as soon as it has received the deletion. For a short time nobody leads, and never do two candidates lead.",
      "For etcd a killed leader is the same: no renewal arrives, and its lease expires.",
    ],
    book: book("01-leases"),
  },
  {
    id: "key-values",
    title: "Key-values",
    chapter: 2,
    question:
      "p1 leads, resigns, and leads again. Its key has the same name, the same value and the same lease as before. Which number tells its two tenures apart?",
    setup: { name: "Key-values", steps: queue("eldest") },
    try: [
      "Look at the key of p1 in the queue: its token, which is its create revision, and its lease.",
      "Choose Resign for p1. It registers again, and leads again, because it is alone.",
      "Compare the numbers, and do it once more.",
    ],
    see: [
      "The create revision is greater each time. It is the token of the tenure, and no earlier tenure had it.",
      "The name of the key is made from the lease, and the session keeps its lease. So the name, the lease and the value stay the same, and none of them can tell the tenures apart.",
      "The revision counts all transactions of the store that changed something, so the token may skip numbers.",
    ],
    book: book("02-key-values"),
  },
  {
    id: "keys-on-a-lease",
    title: "Keys on a lease",
    chapter: 3,
    question:
      "The key of a candidate must be deleted when the candidate has died. And a candidate whose key was deleted must stop. What connects the two?",
    setup: { name: "Keys on a lease", steps: queue("eldest", "eldest", "eldest") },
    try: [
      "Below More of p1, which leads, choose Delete its key.",
      "Choose Revoke its lease for the next leader.",
      "Choose Kill for the one after that, and watch the time that its lease has left.",
    ],
    see: [
      "p1 watches its own key. It receives the deletion, stops at once, and registers again at the end of the queue.",
      "When a lease is revoked, etcd deletes the keys that are bound to it. The leader receives this deletion too. Its session has ended, so it opens another one, and its new key has another name.",
      "A killed process deletes nothing and revokes nothing. Its key remains until the lease expires, and the others wait for it.",
    ],
    book: book("03-keys-on-a-lease"),
  },
  {
    id: "test-and-set",
    title: "Test-and-set",
    chapter: 4,
    question:
      "A candidate registers, and the answer is lost. Is it in the queue or not? What does it have to do?",
    setup: { name: "Test-and-set", steps: [...queue("eldest", "eldest"), stopAt("p2", "Txn answer")] },
    try: [
      "Choose Resign for p2. The answers to its transactions are held; each is given up after two seconds, and asked for again.",
      "Release the answers until p2 is in the queue again: its registration has reached etcd.",
      "Drop the next answer, or wait until it is given up: p2 does not know that it is in the queue. Look at the answer after that: it has else, and the key.",
      "Below More of p2, choose Hold no more.",
    ],
    see: [
      "p2 does not know whether it is in the queue. It sends the same transaction again, as it does if an answer takes too long.",
      "The transaction writes the key only if it does not exist (create revision 0). It exists, so nothing is written, and the second branch returns it. p2 continues with this key.",
      "There is one key of p2, with the create revision of the first attempt. So p2 knows its position and its token, and waits only once.",
    ],
    book: book("04-test-and-set"),
  },
  {
    id: "querying",
    title: "Querying",
    chapter: 5,
    question:
      "The key before p4 is deleted. How does p4 find out which candidates are older, without reading the whole queue?",
    setup: { name: "Querying", steps: queue("eldest", "eldest", "eldest", "eldest") },
    try: [
      "Choose Leave for p3.",
      "Open the messages of p4 after that: one event, one request, one answer.",
      "Choose Leave for p2, and look at the next request of p4.",
    ],
    see: [
      "The event has the revision at which the key of p3 was deleted. p4 reads the keys of p1 and p2, which were there when it registered, and its own key, all at this revision.",
      "One member answers from its memory (serializable). The answer is exact all the same, because the state at a past revision never changes.",
      "The key of p2 exists, so p4 waits for p2 now: the arrow moves. Nobody can register ahead of p4, so its list of older candidates only gets shorter.",
    ],
    book: book("05-querying"),
  },
  {
    id: "watching",
    title: "Watching",
    chapter: 6,
    question:
      "p2 waits until the key of p1 is deleted. What happens if the event comes late, and what if it never comes?",
    setup: { name: "Watching", steps: [...queue("eldest", "eldest"), stopAt("p2", "Watch event")] },
    try: [
      "Choose Resign for p1. Its key is deleted, and the event for p2 is held.",
      "Look at the queue: p2 is the oldest candidate. Does it lead?",
      "Release the event.",
      "Set it up again, and drop the event instead.",
    ],
    see: [
      "While the event is held, nobody leads. p2 has the oldest key, but it has not proven that yet. This is safe, and only takes time.",
      "When the event arrives, p2 reads, and leads about a millisecond later.",
      "When the event is lost, the watch has failed. p2 opens another watch and reads the key. The key does not exist any more, so p2 missed nothing.",
    ],
    book: book("06-watching"),
  },
  {
    id: "basic-algorithm",
    title: "The basic algorithm",
    chapter: 7,
    question:
      "p1 hands over to p2. Which single request does p2 send before it leads, and why is the event alone not enough?",
    setup: { name: "The basic algorithm", steps: queue("eldest", "eldest", "eldest") },
    try: [
      "Choose Resign for p1.",
      "Find these in the lanes: the end of the leadership of p1, its transaction, the event for p2, the request of p2 after it, and the win.",
      "Open the request and its answer, and compare the revisions.",
    ],
    see: [
      "p1 stops leading first. Then it deletes its key, in a transaction that compares the create revision.",
      "p2 receives the deletion with its revision, and reads its own key at exactly this revision. The answer is the proof: at one revision its key exists, and no older key does.",
      "The event only says that the key of p1 was deleted. It does not say that the key of p2 still exists.",
      "p1 registers again, behind p3, which received nothing.",
    ],
    book: book("07-basic-algorithm"),
  },
  {
    id: "thundering-herds",
    title: "Thundering herds",
    chapter: 8,
    question:
      "Six candidates wait in one queue. p1, p2 and p3 use the naive protocol: each watches all keys. p4, p5 and p6 are of Eldest. The leader leaves. Which of them receive an event, and which send a request?",
    setup: {
      name: "Thundering herds",
      steps: queue("herd", "herd", "herd", "eldest", "eldest", "eldest"),
    },
    try: [
      "Choose Leave for p1.",
      "Choose Pause and zoom in (+) at the mark of what you did, then count the arrows of each lane.",
      "Then choose Leave for p5, in the middle of the queue, and count again.",
    ],
    see: [
      "When p1 leaves, p2 and p3 both receive the event, and both read which key is the oldest. Only p2 needed it. With a thousand candidates that is a thousand events and a thousand reads.",
      "p4, p5 and p6 receive nothing: the key that each of them watches is still there.",
      "When p5 leaves, p6 receives one event, reads, and waits for p4 now. p3 is not concerned, and reads all the same.",
      "p6 does not take the departure for a win: it was that of a waiting candidate.",
    ],
    book: book("08-thundering-herds"),
  },
  {
    id: "query-leader",
    title: "Query leader",
    chapter: 9,
    question:
      "The observer is not a candidate. What does it report while the leader is dead and its key still exists, while there is no candidate, and while etcd does not answer?",
    setup: { name: "Query leader", steps: queue("eldest", "eldest") },
    try: [
      "Choose Kill for p1, and compare the report of the observer with the lane of p1.",
      "When p2 leads, choose Leave for it.",
      "Add a candidate. When it leads, stop two members of etcd, and continue them later.",
    ],
    see: [
      "A report is true at its revision. The observer reports p1 until the key is deleted, although the process is dead. Use a report for routing, and the guard for writes.",
      "The observer then reports p2 without sending a request: it has a copy of the queue. Without a candidate it reports that nobody leads.",
      "With one member of three, etcd has no majority. After some seconds the observer reports unknown, and the reason. The leader stops before its lease can end.",
    ],
    book: book("09-query-leader"),
  },
  {
    id: "node-values",
    title: "The node values",
    chapter: 10,
    question:
      "Each key has a value. Here it is the name of the candidate, in a service also its address. Does the value decide anything, and what may a reader rely on?",
    setup: { name: "The node values", steps: queue("eldest", "eldest") },
    try: [
      "Point at the names in the queue: the tooltip of each has the key and the value.",
      "Open the transaction with which p2 has registered: it has the value and the lease.",
      "Choose Resign for p1, and look at the report of the observer, and at the new key of p1.",
    ],
    see: [
      "The order is that of the create revisions. The value is only bytes for the protocol.",
      "The value is written together with the lease. A put without the lease would unbind the key, and the key would outlive its process.",
      "The value, the key and the token in a report come from one event, so they belong together. The new key of p1 has the same value as the old one, and another token.",
    ],
    book: book("10-node-values"),
  },

  {
    id: "two-leaders-concurrency",
    title: "Two leaders of etcd's package, by hand",
    chapter: 0,
    question:
      "p1 and p2 use etcd's own package. p1 counts its lease from the moment at which it reads the answer to a renewal. Can you make both of them leaders, only by holding one answer?",
    setup: { name: "Two leaders of etcd's package", steps: queue("concurrency", "concurrency") },
    try: [
      "Below More of p1, set a breakpoint: LeaseKeepAlive answer. Wait until such an answer is held. etcd has renewed the lease then, and p1 has not read it.",
      "Choose Hold messages for p1 at once, so that no more renewals reach etcd.",
      "Count to two, and release the answer. Touch nothing else.",
      "Wait until the lease of p1 ends in etcd.",
    ],
    see: [
      "etcd counts 5 seconds from the renewal. p1 counts 5 seconds from your release. p2 leads when etcd has deleted the key of p1, and p1 still leads: both lanes are red.",
      "The two leaders last as long as you have held the answer, and up to a second more, because the package looks at its deadline once a second.",
      "A slow network does the same: choose Delay with 2000 ms for a leader of the package, wait some seconds, and cut off its requests.",
    ],
    book: book("01-leases"),
  },
  {
    id: "two-leaders-eldest",
    title: "The same with Eldest: it fails",
    chapter: 0,
    question: "p1 and p2 are of Eldest. Can you make two leaders in the same way, or in any other?",
    setup: { name: "No two leaders of Eldest", steps: queue("eldest", "eldest") },
    try: [
      "Do the same as with etcd's package: a breakpoint for LeaseKeepAlive answer, then Hold messages. Watch the held answers: p1 gives each one up within a second, and it leaves the list. Release one before that, if you can.",
      "Set it up again, and try to drop messages, to release them in another order, to stop p1 and continue it, and to delay it.",
    ],
    see: [
      "p1 counts from the moment before it sent the renewal. However late it reads the answer, its deadline is before that of etcd. It stops first, and then p2 leads.",
      "An answer that takes longer than the timeout of its attempt does not count at all. A renewal also counts only when a majority of etcd's members has confirmed it.",
      "You can take the leadership from p1, and you can have nobody lead for a while. You do not get two lanes that are red.",
    ],
    book: book("01-leases"),
  },
  {
    id: "no-deadline",
    title: "Without the deadline",
    chapter: 0,
    rule: "deadline",
    question:
      "From the code of p1 a rule was taken out: it goes on leading after its deadline. What is the deadline for?",
    setup: { name: "Without the deadline", steps: [add("eldest", "deadline"), add("eldest")] },
    try: [
      "Choose Cut off for p1, which leads.",
      "Wait until the lease of p1 ends in etcd, and look at both lanes.",
      "Set it up with the rule, and do the same.",
      "Try the rule clock as well, which you find at Rules, beside Add: its clock runs at half the speed.",
    ],
    see: [
      "p2 leads, rightly. p1 is still certain that it leads: two lanes are red. p1 is cut off, so nobody can tell it.",
      "With the rule, p1 stops half a second before its lease can end, without a message. That is why it needs a deadline of its own, and a clock.",
      "The clocks of p1 and of etcd may show different times. Their speeds must differ by less than the margin, which is a tenth.",
    ],
    book: book("01-leases"),
  },
  {
    id: "no-guard",
    title: "Without the guard",
    chapter: 0,
    rule: "guard",
    question:
      "From the code of p1 a rule was taken out: it writes without comparing its token. It is stopped while it leads, and goes on when p2 leads. What happens to the write that it sends then?",
    setup: { name: "Without the guard", steps: [add("eldest", "guard"), add("eldest")] },
    try: [
      "Choose Stop for p1, which leads. Wait until p2 leads.",
      "Choose Continue for p1, and open the first transaction that it sends then, and its answer.",
      "Set it up with the rule, and do the same.",
    ],
    see: [
      "Without the rule, the transaction of p1 has no If. etcd applies it in the tenure of p2: a late write of an old leader.",
      "With the rule, the transaction begins with If create(key) = token. The key of p1 does not exist any more, so etcd takes the Else branch and applies nothing.",
      "p1 could not have known better: a process can be stopped between its last check and its write. Only etcd can refuse the write.",
    ],
    book: book("04-test-and-set"),
  },
  {
    id: "key-without-an-owner",
    title: "A key without an owner",
    chapter: 0,
    rule: "owner",
    question:
      "From the code of p1 a rule was taken out: after a tenure it leaves a key on a lease that no candidate has. What does the queue do with a key that nobody deletes?",
    setup: { name: "A key without an owner", steps: [add("eldest", "owner"), add("eldest")] },
    try: [
      "Choose Resign for p1, which leads. Look at the keys that are in the queue then.",
      "Choose Resign for p2.",
      "An operator has to help: choose Delete this key for it in the queue.",
      "Set it up with the rule, and do the same.",
    ],
    see: [
      "There is one key more than there are participants. It waits in the queue like any other key.",
      "When p2 resigns, this key is the oldest, and nobody leads: no process owns it. All others wait until its lease ends, which takes ten minutes here.",
      "With the rule, each key is bound to the lease of its owner. Whatever happens to the owner, the key is deleted, at the latest with the lease.",
    ],
    book: book("03-keys-on-a-lease"),
  },
  {
    id: "leader-without-a-key",
    title: "A leader whose key is deleted",
    chapter: 0,
    question:
      "p1 and p2 use etcd's own package, which does not watch the key of the leader. An operator deletes this key. Who leads?",
    setup: { name: "A leader whose key is deleted", steps: queue("concurrency", "concurrency") },
    try: [
      "Below More of p1, which leads, choose Delete its key.",
      "Look at the lanes, and wait as long as you like.",
      "Then let both leave, add two candidates of Eldest, and do the same.",
    ],
    see: [
      "p2 receives the deletion and leads. p1 still leads: its lease exists, and it looks at nothing else. Both lanes are red until p1 resigns.",
      "A candidate of Eldest watches its own key. It stops within milliseconds, and registers again at the end of the queue.",
    ],
    book: book("03-keys-on-a-lease"),
  },
  {
    id: "winner-without-a-key",
    title: "A winner without a key",
    chapter: 0,
    question:
      "p1, p2 and p3 use etcd's own package. An operator deletes the key of p2, which waits. Then p1 resigns. Who leads?",
    setup: {
      name: "A winner without a key",
      steps: queue("concurrency", "concurrency", "concurrency"),
    },
    try: [
      "Choose Delete its key for p2.",
      "Choose Resign for p1.",
      "Let all three leave, add three candidates of Eldest, and do the same.",
    ],
    see: [
      "p2 has no key, and does not notice. When the key of p1 is deleted, p2 finds no older key and leads. p3 finds none either, and leads too: both lanes are red.",
      "A candidate of Eldest is told at once that its key was deleted, and registers again. And it never wins without a proof that its own key exists.",
    ],
    book: book("07-basic-algorithm"),
  },
  {
    id: "gap-before-the-watch",
    title: "The gap before the watch",
    chapter: 0,
    question:
      "p2 has registered, and its watch of the key of p1 has not begun. In between p1 resigns. A watch reports no past deletion: does p2 wait for ever?",
    setup: {
      name: "The gap before the watch",
      steps: [...queue("eldest", "eldest"), stopAt("p2", "Watch request")],
    },
    try: [
      "Choose Resign for p2: it registers again, and the requests for its new watches are held.",
      "Choose Resign for p1, so that its key is deleted now. Release nothing.",
      "Look at the lane of p2: which request does it send although no event came?",
    ],
    see: [
      "No watch of p2 has begun, so no event reports the deletion. An attempt that is not answered within two seconds ends (a red cross). p2 asks again, and reads.",
      "The key of p1 does not exist in that answer, so p2 leads, about two seconds after its registration at the latest. The mutant 16-no-look-after-the-watch leaves this read out, and waits for ever.",
    ],
    book: book("06-watching"),
  },
  {
    id: "stopped-leader",
    title: "A leader that was stopped",
    chapter: 0,
    question:
      "p1 leads and is stopped for longer than its lease, as by a pause of its machine. Its timers have not run. What does it do first when it goes on?",
    setup: { name: "A leader that was stopped", steps: queue("eldest", "eldest") },
    try: [
      "Choose Stop for p1. Wait until p2 leads.",
      "Choose Continue for p1, and look at its lane.",
      "Do it again with heartbeats: add two such candidates, let the others leave, and stop the leader.",
    ],
    see: [
      "p1 reads the clock at each use, and does not wait for a timer. Its deadline has passed, so it does not lead any more when it goes on, not even for a moment.",
      "Without heartbeats p2 waits until the lease of 5 seconds has ended. With heartbeats the next candidate deletes the key of a leader that was silent for a second.",
    ],
    book: book("01-leases"),
  },
  {
    id: "faster-than-a-lease",
    title: "Faster than a lease",
    chapter: 0,
    question:
      "p1 has a keeper: a second process beside it. p2 and p3 send heartbeats. How long is nobody the leader after each of them has been killed?",
    setup: { name: "Faster than a lease", steps: queue("keeper", "heartbeats", "heartbeats") },
    try: [
      "Choose Kill for p1, which leads.",
      "When p2 leads, choose Kill for p2.",
      "Compare the gaps between the leaders in the lanes.",
    ],
    see: [
      "The keeper of p1 is told by the kernel that the process is dead. It revokes the lease, and p2 leads some milliseconds later.",
      "p2 has no keeper. p3 receives no heartbeat for a second, and then deletes the key of p2, in a transaction that compares the last heartbeat. That takes about a second instead of five.",
      "Both need a proof that the old leader has stopped: the kernel knows it, or the deadline of the heartbeats has passed before p3 may act.",
    ],
    book: book("01-leases"),
  },
];
