/*
 * The lease: when a leader may be sure (G3). Time passes in ticks, for ever: only
 * what is left of a lease, and how old a request is, is kept, so that runs of any
 * length and any number of campaigns fit into finitely many states.
 *
 * A tick may come between any two steps, and any number of ticks may: that is the
 * slow network, and the process that is paused. The queue is kept as places, oldest
 * first; a proof that nobody is older is good here from the moment at which it was
 * true, for ever. So what queue.pml shows is not used here, nor is any of this there.
 *
 * Macros that break one step, or an assumption, are under #ifdef; docs/model/check
 * knows what each must violate. Lines that begin with "~" are printed when a trail
 * is replayed; cmd/eldest/lab/modeltrace draws them.
 */
#ifndef N
#define N 2 /* candidates: 2 or 3 */
#endif
#ifndef TTL
#define TTL 4 /* ticks that the server grants */
#endif
#ifndef MARGIN
#define MARGIN 1 /* ticks */
#endif

#ifdef NO_MARGIN
#define SURE TTL
#else
#define SURE (TTL - MARGIN) /* ticks for which a renewal is certain, from its sending */
#endif

/*
 * Candidate 0's clock may miss one tick in so many: its rate and etcd's differ by at
 * most MARGIN/TTL. The other clocks are exact; candidates are alike but for that.
 */
#if defined(EXACT_CLOCKS)
#define PERIOD 1
#elif defined(DRIFT_OVER_MARGIN)
#define PERIOD (TTL / 2)
#elif defined(CLOCK_STOPS_IN_SUSPEND)
#define PERIOD 1 /* it may miss all of them */
#else
#define PERIOD ((TTL + MARGIN - 1) / MARGIN)
#endif

/* Where a candidate's process is. */
#define OUT 0      /* no session */
#define OPENING 1  /* a lease was asked for */
#define IDLE 2     /* a session; the key of a standing that ended may still be there */
#define WAITING 3
#define LEADING 4
#define OVER 5     /* the session is lost, closed, or its process crashed */

/* What is under way between a session and etcd: one request at most. */
#define NOTHING 0
#define REQUEST 1
#define GRANTED 2  /* a reply: the lease has its full TTL */
#define GONE 3     /* a reply: there is no such lease (TTL 0) */

byte at[N];        /* where the process is */
byte sure[N];      /* ticks to the session's deadline, on its own clock */
byte under[N];     /* what is under way */
byte age[N];       /* ticks since that was sent, on its own clock; SURE: too many */

bit  lease[N];     /* etcd has the lease */
byte left[N];      /* ticks until etcd may end it, on etcd's clock */
byte place[N];     /* of its key in the queue, from 1; 0: no key */
bit  first[N];     /* this key has been the oldest: the proof can be had */

/* For the assertions only. */
bit  taken[N];     /* the key was removed by hand: G3 makes an exception */
bit  passed[N];    /* a younger key has won since this one stands */

byte missed;       /* ticks since candidate 0's clock missed one, up to PERIOD - 1 */
byte h;            /* used within one step only */

/* Keys removed by hand are outside G3's promise. */
#ifdef NO_EXCEPTION_FOR_HANDS
#define BY_HAND(i) false
#else
#define BY_HAND(i) taken[i]
#endif

#if defined(NO_CLOCK_AT_WIN)
#define CERTAIN(i) true
#elif defined(STORY) && !defined(REQUEUE_LEAVES_THE_WIN)
#define CERTAIN(i) (sure[i] > 0 && place[i] == 1)
#else
#define CERTAIN(i) (sure[i] > 0)
#endif

#ifdef LATE_REPLY_REVIVES
#define TIMELY(i) true
#else
#define TIMELY(i) (sure[i] > 0)
#endif

/* What Holds(0) says, now. */
#define HOLDS(i) (at[i] == LEADING && sure[i] > 0)

/* etcd deletes the key of i, if it is there; who stood behind it moves up. */
inline unqueue(i) {
	d_step {
		if
		:: place[i] != 0 ->
			h = 0;
			do
			:: h < N && place[h] > place[i] ->
				place[h] = place[h] - 1;
				if
				:: place[h] == 1 && at[h] == WAITING -> first[h] = 1
				:: else
				fi;
				h++
			:: h < N && place[h] <= place[i] -> h++
			:: else -> break
			od;
			h = 0;
			place[i] = 0;
			printf("~ c%d end key\n", i)
		:: else
		fi
	}
}

/* A key is created, bound to the lease: who comes last is last. */
inline enqueue(i) {
	d_step {
		place[i] = 1; h = 0;
		do
		:: h < N && h != i && place[h] != 0 -> place[i]++; h++
		:: h < N && !(h != i && place[h] != 0) -> h++
		:: else -> break
		od;
		h = 0;
		first[i] = (place[i] == 1)
	}
}

/* The win is decided: what etcd has proven meets what this side knows. */
inline wins(i) {
#ifndef STORY
	assert(!passed[i] || BY_HAND(i)); /* G2: tokens rise in the order of the wins */
#endif
	h = 0;
	do
	:: h < N && h != i ->
		assert(!HOLDS(h) || BY_HAND(h) || BY_HAND(i)); /* G1, G3: no two are sure that they lead */
		if
		:: (at[h] == WAITING || at[h] == LEADING) && first[h] && place[h] == 0 -> passed[h] = 1
		:: else
		fi;
		h++
	:: h < N && h == i -> h++
	:: else -> break
	od;
	h = 0
}

/* A standing is over, as the process sees it. */
inline stood(i) {
	printf("~ c%d end leads\n", i);
	first[i] = 0; taken[i] = 0; passed[i] = 0
}

/* The session is over, as the process sees it. */
inline over(i) {
	stood(i);
	at[i] = OVER; left[i] = 0; sure[i] = 0; under[i] = NOTHING; age[i] = 0
}

/* A confirmation from etcd is read. deadline = time of sending + TTL - margin. */
inline confirmed(i) {
#ifdef DEADLINE_FROM_RECEIPT
	sure[i] = SURE;
#else
	sure[i] = SURE - age[i];
#endif
	under[i] = NOTHING; age[i] = 0
}

proctype Candidate(byte i) {
end:
	do
	/* The session is opened. */
	:: atomic { at[i] == OUT && !lease[i] ->
		at[i] = OPENING; under[i] = REQUEST; age[i] = 0;
		printf("~ c%d send r%d lease?\n", i, i) }
	:: atomic { at[i] == OPENING && under[i] == GRANTED ->
		printf("~ c%d recv a%d\n", i, i);
		if
		:: age[i] < SURE -> confirmed(i); at[i] = IDLE
		:: age[i] >= SURE -> over(i) /* too late to mean anything: another one is asked for */
		fi }

	/* It is renewed. Whoever wakes up after the deadline must not. */
	:: atomic { at[i] >= IDLE && at[i] <= LEADING && under[i] == NOTHING && sure[i] > 0 ->
		under[i] = REQUEST; age[i] = 0;
		printf("~ c%d send r%d renew?\n", i, i) }
	:: atomic { at[i] >= IDLE && at[i] <= LEADING && under[i] == GRANTED ->
		printf("~ c%d recv a%d\n", i, i);
		if
		:: TIMELY(i) ->
			assert(sure[i] > 0); /* G3: what has ended does not come back */
			confirmed(i)
		:: !TIMELY(i) -> over(i) /* the clock before anything else: a late reply proves nothing */
		fi }
	:: atomic { at[i] >= IDLE && at[i] <= LEADING && under[i] == GONE ->
		printf("~ c%d recv a%d\n", i, i);
		over(i) }
	/* The timer, or the first look at the clock after a pause. */
	:: atomic { at[i] >= IDLE && at[i] <= LEADING && sure[i] == 0 ->
		printf("~ c%d note deadline passed: session lost\n", i);
		over(i) }

	/* The campaign. */
	:: atomic { at[i] == IDLE && lease[i] && place[i] == 0 ->
		enqueue(i);
		at[i] = WAITING;
		printf("~ c%d begin key\n", i);
		printf("~ c%d call put key => place %d in the queue\n", i, place[i]) }
	:: atomic { at[i] == WAITING && first[i] && CERTAIN(i) ->
		printf("~ c%d begin leads\n", i);
		printf("~ c%d note has the proof, leads\n", i);
		printf("~ c%d sure %d\n", i, sure[i]);
		wins(i);
		at[i] = LEADING }
	:: atomic { (at[i] == WAITING || at[i] == LEADING) && place[i] == 0 ->
		printf("~ c%d hears own key is gone\n", i);
		stood(i); at[i] = IDLE }
	/*
	 * It withdraws or resigns, requeues or drains: the standing ends first, the key
	 * goes after that, at any time. Whoever requeues registers again then, as all may.
	 */
#ifdef REQUEUE_LEAVES_THE_WIN
	/* The campaign goes on with what it has proven. */
	:: atomic { at[i] == WAITING && place[i] != 0 ->
		printf("~ c%d note requeues\n", i);
		printf("~ c%d call delete key => done\n", i);
		unqueue(i) }
#endif
#ifdef RESIGN_DELETES_FIRST
	:: atomic { at[i] == LEADING ->
		printf("~ c%d call delete key => done\n", i);
		unqueue(i) }
#endif
	:: atomic { at[i] == WAITING || at[i] == LEADING ->
		printf("~ c%d note resigns\n", i);
		stood(i); at[i] = IDLE }
	:: atomic { at[i] == IDLE && place[i] != 0 ->
		printf("~ c%d call delete key => done\n", i);
		unqueue(i) }

#ifndef STORY
	/* It closes its session, or crashes. */
	:: atomic { at[i] == OPENING || (at[i] >= IDLE && at[i] <= LEADING && sure[i] > 0) ->
		printf("~ c%d note closes or crashes\n", i);
		over(i) }
#endif
	/* Once etcd has nothing of it, it may come back. */
	:: atomic { at[i] == OVER && !lease[i] -> at[i] = OUT }
	od
}

/* etcd, the network, and those who remove keys by hand. */
proctype Etcd(byte i) {
end:
	do
	:: atomic { under[i] == REQUEST && at[i] == OPENING ->
		lease[i] = 1; left[i] = TTL; under[i] = GRANTED;
		printf("~ etcd recv r%d\n", i);
		printf("~ etcd send a%d c%d granted for %d ticks\n", i, i, TTL) }
	:: atomic { under[i] == REQUEST && at[i] != OPENING ->
		printf("~ etcd recv r%d\n", i);
		if
		:: lease[i] && left[i] > 0 ->
			left[i] = TTL; under[i] = GRANTED;
			printf("~ etcd send a%d c%d renewed for %d ticks\n", i, i, TTL)
#ifdef OLD_MEMBER_CONFIRMS
		:: under[i] = GRANTED
#endif
		:: !lease[i] || left[i] == 0 ->
			under[i] = GONE; age[i] = 0;
			printf("~ etcd send a%d c%d gone\n", i, i)
		fi }
#ifndef STORY
	/* A request or a reply is lost, or the attempt given up. */
	:: atomic { (under[i] == REQUEST || under[i] == GRANTED) && at[i] != OPENING ->
		under[i] = NOTHING; age[i] = 0 }
	/* An attempt given up arrives after all; or etcd's leader changes, which starts
	 * leases anew. */
	:: atomic { lease[i] && left[i] < TTL && at[i] != OVER -> left[i] = TTL }
	/* An operator revokes the lease, or deletes the key. */
	:: atomic { lease[i] && (at[i] == WAITING || at[i] == LEADING) ->
		printf("~ outside note removes key of c%d\n", i);
		if
		:: lease[i] = 0; left[i] = 0
		:: skip
		fi;
		unqueue(i);
		taken[i] = 1 }
#endif
	/* A lease has run out, and etcd gets to it. */
	:: atomic { lease[i] && left[i] == 0 && at[i] != OVER ->
#ifndef STORY
		assert(sure[i] == 0); /* G3: no session counts on its lease when etcd may end it */
#endif
		printf("~ etcd note lease of c%d ends\n", i);
		lease[i] = 0; unqueue(i) }
	/* After the end of its session it runs out or is revoked, sooner or later. */
	:: atomic { lease[i] && at[i] == OVER ->
		printf("~ etcd note lease of c%d ends\n", i);
		lease[i] = 0; unqueue(i) }
	od
}

#define TICK(i) \
	if \
	:: lease[i] && left[i] > 0 -> left[i]-- \
	:: else \
	fi; \
	if \
	:: late && i == 0 \
	:: else -> \
		if \
		:: sure[i] > 0 -> sure[i]--; printf("~ c%d sure %d\n", i, sure[i]) \
		:: else \
		fi; \
		if \
		:: (under[i] == REQUEST || under[i] == GRANTED) && age[i] < SURE -> age[i]++ \
		:: else \
		fi \
	fi

active proctype Clock() {
	bit late;
	atomic {
		missed = PERIOD - 1;
		h = 0;
		do
		:: h < N -> run Candidate(h); run Etcd(h); h++
		:: else -> break
		od;
		h = 0
	}
end:
	do
	:: atomic {
#ifdef STORY
		under[0] == NOTHING -> /* only the others are slow */
#endif
		if
#ifndef EXACT_CLOCKS
		:: missed == PERIOD - 1 -> late = 1; missed = 0; printf("~ tick but for c0\n")
		:: missed < PERIOD - 1 -> missed++; printf("~ tick\n")
#endif
		:: missed == PERIOD - 1 -> printf("~ tick\n")
		fi;
		d_step {
			TICK(0);
			TICK(1);
#if N > 2
			TICK(2);
#endif
			late = 0
		} }
	od
}
