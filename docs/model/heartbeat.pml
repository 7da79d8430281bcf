/*
 * Heartbeats: how a silent leader is evicted, and when a leader may be sure with them
 * (docs/decisions/0029-heartbeats.md). Time passes in ticks, for ever, as in lease.pml:
 * only what is left of deadlines and timers is kept, and how old a request is.
 *
 * Of a beat it does not matter which one it is, only whether it is the one that the
 * successor knows (knows) or that an eviction under way compares with (evicting). A beat
 * that is put, or deleted, is no longer that one, and never is again.
 *
 * Beats are put at any moment, also without anybody who waits for the answer: those are
 * the ones that were given up and arrive after all. So only those are kept whose
 * acknowledgement may still be read. The beat key may be deleted at any moment: by a
 * session that leads nothing any more, whose request was long under way, or by hand. So
 * whether there is one need not be kept.
 *
 * A read is carried out when its answer is acted upon, or earlier: what it said then is
 * kept (proof), or is nothing any more when a beat or a key changes (knows, evicting).
 *
 * The lease is not in here. It ends after its session has, at any moment.
 *
 * Macros that break one step, or an assumption, are under #ifdef; docs/model/check
 * knows what each must violate.
 */
#ifndef N
#define N 2 /* candidates: 2 or 3 */
#endif
#ifndef D
#define D 3 /* ticks of silence, after which a leader may be evicted */
#endif
#ifndef MARGIN
#define MARGIN 1 /* ticks */
#endif
/* Assertions before number FROM are switched off; in the model as it is, none is. */
#ifndef FROM
#define FROM 1
#endif
#ifndef BEATS
#define BEATS 2 /* under way at once, for each session: 1 or 2 */
#endif

#ifdef NO_MARGIN
#define SURE D
#else
#define SURE (D - MARGIN) /* ticks for which a beat is good, from its sending */
#endif

/*
 * Candidate 0's clock may miss one tick in so many: its rate and the others' differ by
 * at most MARGIN/D. The others run alike.
 */
#if defined(EXACT_CLOCKS)
#define PERIOD 1
#elif defined(DRIFT_OVER_MARGIN)
#define PERIOD (D / 2)
#elif defined(CLOCK_STOPS_IN_SUSPEND)
#define PERIOD 1 /* it may miss all of them */
#else
#define PERIOD ((D + MARGIN - 1) / MARGIN)
#endif

/* Where a candidate's process is. */
#define IDLE 0     /* the key of a standing that ended may still be there */
#define STANDS 1   /* it waits, or proves that it is the oldest, or is suspended */
#define LEADS 2
#define OVER 3     /* its session is lost or closed, or the process crashed */

/* What is under way of a beat that somebody waits for. */
#define NOTHING 0
#define SENT 1
#define DONE 2     /* the acknowledgement is under way, or lies unread */

/* A candidate's process and its session. */
byte at[N];
byte sure[N];      /* ticks to the end of the stretch, on its own clock; 0: there is none */
byte proof[N];     /* won, says etcd, asked in this stretch; 2: asked outside of one */
byte under[2 * N]; /* beats under way; of two the one sent earlier comes first */
byte age[2 * N];   /* ticks since the sending, on its own clock; with SURE nobody waits */

/* What it does about its predecessor. */
bit  knows[N];     /* it has received the beat that is the newest at etcd */
byte timer[N];     /* ticks until that was too long ago, on its own clock */

/* etcd. */
byte place[N];     /* of its key in the queue, from 1; 0: no key */
bit  evicting[N];  /* its eviction of its predecessor is under way, and would succeed */

/* For the assertions only. */
bit  first[N];     /* this key has been the oldest */
bit  taken[N];     /* the key was removed by hand: outside what is promised */
bit  passed[N];    /* a younger key has won since this one stands */

byte missed;       /* ticks since candidate 0's clock missed one, up to PERIOD - 1 */
byte h;            /* used within one step only */

/* Only for mutants: the timer of a beat that is not the newest any more is kept. */
#if defined(TIMER_NOT_RESTARTED) || defined(EVICTS_WHAT_IT_READS) || defined(RESTORED_AT_ONCE)
#define TIMER_GOES_ON
#endif
#ifdef RESUME_WITHOUT_PROOF
bit  led[N];       /* in this standing */
#endif
#ifdef TIMER_FROM_SENDING
bit  slow[N];      /* a beat that was given up has not arrived yet */
bit  old[N];       /* the newest beat at etcd is that one */
#endif
#ifdef USED_AGAIN_IS_CERTAIN
bit  again[N];     /* this session has been certain before */
#endif

/* Keys removed by hand are outside of what is promised. */
#ifdef NO_EXCEPTION_FOR_HANDS
#define BY_HAND(i) false
#else
#define BY_HAND(i) taken[i]
#endif

/* What Holds(0) says, now. */
#define HOLDS(i) (at[i] == LEADS && sure[i] > 0)

/* The beat key of i is put or deleted: whoever follows i knows an old one, if any. */
inline changes(i) {
	d_step {
	h = 0;
	do
	:: h < N && place[i] != 0 && place[h] == place[i] + 1 ->
		knows[h] = 0;
#ifndef TIMER_GOES_ON
		timer[h] = D; /* the next beat to be received starts it anew */
#endif
#ifndef NO_COMPARE
		evicting[h] = 0;
#endif
		h++
	:: h < N && !(place[i] != 0 && place[h] == place[i] + 1) -> h++
	:: else -> break
	od;
	h = 0
	}
}

/* etcd deletes the key of i. An eviction compares both keys: of i, and by i. */
inline unqueue(i) {
	d_step {
		h = 0;
		do
		:: h < N && place[h] > place[i] ->
			if
			:: place[h] == place[i] + 1 -> knows[h] = 0; timer[h] = D; evicting[h] = 0
			:: else
			fi;
			place[h] = place[h] - 1;
			if
			:: place[h] == 1 -> first[h] = 1
			:: else
			fi;
			h++
		:: h < N && place[h] <= place[i] -> h++
		:: else -> break
		od;
		h = 0;
		place[i] = 0; knows[i] = 0; timer[i] = D; evicting[i] = 0;
		printf("~ c%d end key\n", i)
	}
}

/* A key is created: who comes last is last. */
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

/* The win is decided. */
inline wins(i) {
	assert(FROM > 1 || place[i] == 1 || BY_HAND(i)); /* G3: whoever wins has its key, the oldest */
	assert(FROM > 4 || !passed[i] || BY_HAND(i)); /* G2: tokens rise in the order of the wins */
	h = 0;
	do
	:: h < N && h != i ->
		assert(FROM > 5 || !HOLDS(h) || BY_HAND(h) || BY_HAND(i)); /* G1: no two are certain that they lead */
		if
		:: (at[h] == STANDS || at[h] == LEADS) && first[h] && place[h] == 0 -> passed[h] = 1
		:: else
		fi;
		h++
	:: h < N && h == i -> h++
	:: else -> break
	od;
	h = 0;
	proof[i] = 0;
	at[i] = LEADS;
#ifdef RESUME_WITHOUT_PROOF
	led[i] = 1;
#endif
	printf("~ c%d begin leads\n", i);
	printf("~ c%d sure %d\n", i, sure[i])
}

/* A stretch has ended: leadership is suspended, and what was proven in it is nothing. */
inline suspended(i) {
	if
	:: at[i] == LEADS -> at[i] = STANDS; printf("~ c%d end leads\n", i)
	:: else
	fi;
#if !defined(PROOF_OF_ANOTHER_STRETCH)
	if
	:: proof[i] == 1 -> proof[i] = 0
	:: else
	fi
#endif
}

/* A standing is over, as the process sees it. */
inline stood(i) {
	printf("~ c%d end leads\n", i);
	first[i] = 0; taken[i] = 0; passed[i] = 0; proof[i] = 0; knows[i] = 0; timer[i] = D;
#ifdef RESUME_WITHOUT_PROOF
	led[i] = 0;
#endif
}

/* Nobody waits any more for the answer to the beat at u; to the one that was sent earlier. */
#define FORGET(u) under[u] = NOTHING; age[u] = 0
#if BEATS > 1
#define FORGET_FIRST(i) under[2 * i] = under[2 * i + 1]; age[2 * i] = age[2 * i + 1]; FORGET(2 * i + 1)
#else
#define FORGET_FIRST(i) FORGET(2 * i)
#endif

#ifdef DEADLINE_FROM_RECEIPT
#define GOOD(u) SURE
#else
#define GOOD(u) (SURE - age[u]) /* what is left to the beat's own deadline */
#endif

#ifdef LATE_ACK_CONTINUES
#define LATE(i) (sure[i] == 0 && at[i] != LEADS)
#else
#define LATE(i) (sure[i] == 0)
#endif

/* An acknowledgement is read. If no stretch is left that it could continue it begins one. */
inline acknowledged(i, u) {
	printf("~ c%d recv a%d\n", i, u);
	if
	:: LATE(i) -> suspended(i)
	:: else
	fi;
	if
	:: GOOD(u) > sure[i] ->
		sure[i] = GOOD(u);
#ifdef USED_AGAIN_IS_CERTAIN
		again[i] = 1;
#endif
		printf("~ c%d sure %d\n", i, sure[i])
	:: else
	fi;
	assert(FROM > 3 || !HOLDS(i) || place[i] == 1 || BY_HAND(i)) /* G3: whoever goes on has its key, the oldest */
}

#ifdef PROOF_OF_PAST_REVISION
#define WANTS(i) (at[i] == STANDS && first[i]) /* read at the revision of its predecessor's deletion */
#else
#define WANTS(i) (at[i] == STANDS && place[i] == 1)
#endif

proctype Candidate(byte i) {
end:
	do
	/* It stands. */
	:: atomic { at[i] == IDLE && place[i] == 0 ->
		enqueue(i);
		at[i] = STANDS;
		printf("~ c%d begin key\n", i);
		printf("~ c%d call put key => place %d in the queue\n", i, place[i]) }

	/*
	 * A beat, also without a key of its own here: its session may lead elsewhere. Of two
	 * that are sent within one tick one is enough: they have one deadline.
	 */
	:: atomic { at[i] != OVER && under[2 * i] == NOTHING ->
		under[2 * i] = SENT;
		printf("~ c%d send r%d beat\n", i, 2 * i) }
#if BEATS > 1
	:: atomic { age[2 * i] > 0 && under[2 * i + 1] == NOTHING ->
		under[2 * i + 1] = SENT;
		printf("~ c%d send r%d beat\n", i, 2 * i + 1) }
#endif
	:: atomic { under[2 * i] == DONE ->
		acknowledged(i, 2 * i);
		FORGET_FIRST(i) }
#if BEATS > 1
	:: atomic { under[2 * i + 1] == DONE ->
		acknowledged(i, 2 * i + 1);
		FORGET(2 * i + 1) }
#endif
	/* A beat or its acknowledgement is lost, or given up. */
	:: atomic { under[2 * i] != NOTHING -> FORGET_FIRST(i) }
#if BEATS > 1
	:: atomic { under[2 * i + 1] != NOTHING -> FORGET(2 * i + 1) }
#endif

	/* The proof: read in a stretch, counted in the same. */
	:: atomic { WANTS(i) && proof[i] == 0 && sure[i] > 0 ->
		proof[i] = 1;
		printf("~ c%d call who is older => nobody\n", i) }
#ifdef PROOF_BEFORE_STRETCH
	:: atomic { WANTS(i) && proof[i] == 0 && sure[i] == 0 ->
		proof[i] = 2;
		printf("~ c%d call who is older => nobody\n", i) }
#endif
	:: atomic { at[i] == STANDS && proof[i] != 0 && sure[i] > 0 ->
		printf("~ c%d note has the proof, leads\n", i);
		wins(i) }
#ifdef RESUME_WITHOUT_PROOF
	:: atomic { at[i] == STANDS && led[i] && sure[i] > 0 ->
		printf("~ c%d note leads again\n", i);
		wins(i) }
#endif
#ifdef USED_AGAIN_IS_CERTAIN
	/* The session had beats: the proof, once asked for, is taken for one more. */
	:: atomic { WANTS(i) && again[i] && sure[i] == 0 ->
		suspended(i);
		proof[i] = 1; sure[i] = SURE;
		printf("~ c%d call who is older => nobody\n", i) }
#endif
	/* The timer at the end of the stretch, or the first look at the clock after a pause. */
	:: atomic { sure[i] == 0 && (at[i] == LEADS || proof[i] == 1) ->
		printf("~ c%d note stretch over: suspended\n", i);
		suspended(i) }

	/* Its predecessor's newest beat is received, from the watch or by a read. */
	:: atomic { at[i] == STANDS && place[i] > 1 && !knows[i] ->
		knows[i] = 1;
#if defined(EVICTS_WHAT_IT_READS) || defined(RESTORED_AT_ONCE)
		timer[i] = D;
#endif
#ifdef SHORTER_TIMEOUT_OF_ANOTHER
		timer[i] = 1;
#endif
#ifdef TIMER_FROM_SENDING
		h = 0;
		do
		:: place[h] != 0 && place[h] + 1 == place[i] -> break
		:: !(place[h] != 0 && place[h] + 1 == place[i]) -> h++
		od;
		timer[i] = (old[h] -> D - SURE : D);
		h = 0;
#endif
		printf("~ c%d hears beat\n", i) }
	/* Too long ago; a majority says that it is the newest still. */
	:: atomic { at[i] == STANDS && knows[i] && timer[i] == 0 && !evicting[i] ->
		evicting[i] = 1;
		printf("~ c%d note evicts its predecessor\n", i) }
#ifdef EVICTS_WHAT_IT_READS
	/* Another one is the newest, and it is compared with that. */
	:: atomic { at[i] == STANDS && place[i] > 1 && !knows[i] && timer[i] == 0 && !evicting[i] ->
		evicting[i] = 1;
		printf("~ c%d note evicts its predecessor\n", i) }
#endif

	/* It resigns or withdraws: the standing ends first, the key goes at any time after. */
	:: atomic { at[i] == STANDS || at[i] == LEADS ->
		printf("~ c%d note resigns\n", i);
		stood(i); at[i] = IDLE }
	:: atomic { at[i] == IDLE && place[i] != 0 ->
		printf("~ c%d call delete key => done\n", i);
		unqueue(i) }
	:: atomic { (at[i] == STANDS || at[i] == LEADS) && place[i] == 0 ->
		printf("~ c%d hears own key is gone\n", i);
		stood(i); at[i] = IDLE }

	/* It closes its session, or crashes. */
	:: atomic { at[i] != OVER ->
		printf("~ c%d note closes or crashes\n", i);
		stood(i);
		at[i] = OVER; sure[i] = 0;
		FORGET(2 * i);
#if BEATS > 1
		FORGET(2 * i + 1);
#endif
#ifdef USED_AGAIN_IS_CERTAIN
		again[i] = 0;
#endif
		}
	od
}

inline put(i, u) {
	under[u] = DONE;
	printf("~ etcd recv r%d\n", u);
	printf("~ etcd send a%d c%d put\n", u, i);
#ifdef TIMER_FROM_SENDING
	old[i] = 0;
#endif
	changes(i)
}

/* etcd, the network, and those who remove keys by hand. */
proctype Etcd(byte i) {
	byte u;
end:
	do
	/* A beat is put that somebody waits for. */
	:: atomic { under[2 * i] == SENT -> put(i, 2 * i) }
#if BEATS > 1
	:: atomic { under[2 * i + 1] == SENT -> put(i, 2 * i + 1) }
#endif
	/* One arrives that was given up, or the beat key is deleted. */
	:: atomic { place[i] != 0 ->
		printf("~ etcd note another beat of c%d, or none\n", i);
		changes(i) }
#ifdef TIMER_FROM_SENDING
	:: atomic { place[i] != 0 && slow[i] ->
		printf("~ etcd note late beat of c%d\n", i);
		changes(i);
		slow[i] = 0; old[i] = 1 }
#endif
#ifdef COMPARE_BY_REVISION
	/* A backup was restored: a new beat gets the revision of the one that is known. */
	:: atomic { under[2 * i] == SENT -> under[2 * i] = DONE;
		printf("~ etcd note beat of c%d, with an old revision\n", i) }
#endif
#ifdef RESTORED_AT_ONCE
	/* A backup is restored: the beat that i knows is the newest again. */
	:: atomic { at[i] == STANDS && place[i] > 1 && !knows[i] && timer[i] < D ->
		printf("~ etcd note old beat is back\n");
		knows[i] = 1 }
#endif

	/* The eviction by i arrives. If it is too late it is not there any more. */
	:: atomic { evicting[i] ->
		do
		:: place[u] != 0 && place[u] + 1 == place[i] -> break
		:: !(place[u] != 0 && place[u] + 1 == place[i]) -> u++
		od;
		printf("~ etcd note evicts c%d for c%d\n", u, i);
		assert(FROM > 2 || !HOLDS(u) || BY_HAND(u)); /* G3: nobody is evicted who is certain that it leads */
		unqueue(u);
		u = 0 }

	/* An operator deletes the key. */
	:: atomic { place[i] != 0 && (at[i] == STANDS || at[i] == LEADS) ->
		printf("~ outside note removes key of c%d\n", i);
		unqueue(i);
		taken[i] = 1 }
	/* The lease of a session that is over ends. */
	:: atomic { at[i] == OVER ->
		printf("~ etcd note lease of c%d ends\n", i);
		if
		:: place[i] != 0 -> unqueue(i)
		:: else
		fi;
		at[i] = IDLE }
	od
}

#ifdef TIMER_GOES_ON
#define COUNTS(i) (knows[i] || timer[i] < D)
#else
#define COUNTS(i) (knows[i])
#endif

#ifdef DEADLINE_FROM_RECEIPT
#define OLDER(u) skip
#else
#define OLDER(u) \
	if \
	:: under[u] != NOTHING -> age[u]++ \
	:: else \
	fi
#endif

#ifdef TIMER_FROM_SENDING
#define GIVEN_UP(i) slow[i] = slow[i] | (under[2 * i] == SENT)
#else
#define GIVEN_UP(i) skip
#endif

#if BEATS > 1
#define OLDER_BEATS(i) \
	OLDER(2 * i); \
	OLDER(2 * i + 1); \
	if \
	:: age[2 * i] == SURE -> GIVEN_UP(i); FORGET_FIRST(i) \
	:: else \
	fi
#else
#define OLDER_BEATS(i) \
	OLDER(2 * i); \
	if \
	:: age[2 * i] == SURE -> GIVEN_UP(i); FORGET_FIRST(i) \
	:: else \
	fi
#endif

#define TICK(i) \
	if \
	:: late && i == 0 \
	:: else -> \
		if \
		:: sure[i] > 0 -> sure[i]--; printf("~ c%d sure %d\n", i, sure[i]) \
		:: else \
		fi; \
		if \
		:: COUNTS(i) && timer[i] > 0 -> timer[i]-- \
		:: else \
		fi; \
		OLDER_BEATS(i) \
	fi

proctype Clock() {
	bit late;
end:
	do
	:: atomic {
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

init {
	atomic {
		missed = PERIOD - 1;
		do
		:: h < N -> timer[h] = D; run Candidate(h); run Etcd(h); h++
		:: else -> break
		od;
		h = 0;
		run Clock()
	}
}
