/*
 * The queue: registration, predecessor, proof, tenure, guard, requeuing,
 * draining. There is no clock: a lease may end at any moment, however early, so what
 * holds here (G1, G2, G4, G5) holds without any assumption on time. lease.pml is about
 * time (G3), transfer.pml about who asks whom to requeue or to drain: here anybody
 * may at any moment, so what holds here holds whoever asks for what.
 *
 * A pause, of any length and before any step, is a process that is not chosen to
 * run; a crash is a pause that never ends. The slow network is the same: a request
 * is carried out when etcd's turn comes, and a watch's news is heard when the
 * candidate's does.
 *
 * Macros that break one step of the protocol are under #ifdef; docs/model/check
 * knows which of the assertions each must violate. Lines that begin with "~" are
 * printed when a trail is replayed; cmd/eldest/lab/modeltrace draws them.
 */
#ifndef N
#define N 2 /* candidates: 2 or 3 */
#endif
#ifndef LIVES
#define LIVES 4 /* keys ever created, by all; each stands again and again until then */
#endif
#ifndef OUTSIDE
#define OUTSIDE 2 /* keys removed from outside while their candidate stands */
#endif

/*
 * etcd. The lives of candidates' keys are numbered in the order of their creation,
 * so a life's number stands for its create revision: it is the token. Life 0 is
 * nobody's. Revisions are counted for changes of the queue only.
 */
byte rev;             /* the newest revision */
byte lives;           /* how many there were so far */
byte owner[LIVES + 1];
byte gone[LIVES + 1]; /* the revision that deleted the key; 0: it lives */
byte key[N];          /* the present life of each candidate's key; 0: none */
byte flying;          /* the token of the guarded write that is under way; 0: none */
byte sender;          /* whose write that is */

/* What candidates do, for etcd's part of the model and for the assertions. */
byte stands[N];       /* the life that the candidate believes in; 0: it is idle */
byte waits[N];        /* the life whose deletion it is to be told of; 0: none */
bit  finished[N];     /* it has gone for good, and its lease will end */
byte proof[LIVES + 1];/* the revision of the proof of that tenure; 0: never led */

byte outside = OUTSIDE;
byte h, n, v;         /* used within one step only */

/*
 * Some assertions follow from earlier ones. To see that they can fail, those before
 * number FROM are switched off; in the model as it is, none is.
 */
#ifndef FROM
#define FROM 1
#endif

#define LIVED(k, r) (gone[k] == 0 || gone[k] > (r))

/* The nearest life older than k that was there at revision r; 0: none. */
inline elder(k, r, out) {
	d_step {
		out = k - 1;
		do
		:: out > 0 && !LIVED(out, r) -> out--
		:: else -> break
		od
	}
}

/* Whom a candidate with life k waits for, as of revision r; 0: nobody, it is first. */
inline ahead(k, r, out) {
#ifdef WAIT_ON_ELDEST
	d_step {
		out = 1;
		do
		:: out < k && !LIVED(out, r) -> out++
		:: else -> break
		od;
		if
		:: out == k -> out = 0
		:: else
		fi
	}
#else
	elder(k, r, out)
#endif
}

/*
 * etcd deletes a key. Each living waiter that watches it will be woken; there must
 * be one at most, and nobody living may stand between a waiter and what it watches.
 */
inline remove(k) {
	rev++;
	gone[k] = rev;
	key[owner[k]] = 0;
	d_step {
		n = 0; h = 0;
		do
		:: h < N && waits[h] == k && key[h] == stands[h] && key[h] != 0 -> n++; h++
		:: h < N && !(waits[h] == k && key[h] == stands[h] && key[h] != 0) -> h++
		:: else -> break
		od; h = 0
	}
	assert(n <= 1); /* G5: one departure wakes one waiter */
	n = 0;
	printf("~ c%d end key\n", owner[k])
}

/*
 * A candidate becomes leader with life k, on the strength of what was read at
 * revision r. The assertions look at etcd's history, not at what the candidate has
 * read.
 */
inline led(i, k, r) {
	assert(FROM > 1 || LIVED(k, r)); /* G1: the own key was alive at the revision of the proof */
	elder(k, r, h);
	assert(FROM > 2 || h == 0); /* G1, G5: nobody older was there at that revision */
	h = 1;
	do
	:: h <= lives && h != k && proof[h] != 0 ->
		assert(FROM > 3 || (h < k -> gone[h] != 0 && gone[h] <= r : gone[k] != 0 && gone[k] <= proof[h])); /* G1: no revision has two leaders */
		assert((h < k) == (proof[h] < r)); /* G2: tokens rise with the revisions of the proofs */
		h++
	:: h <= lives && !(h != k && proof[h] != 0) -> h++
	:: else -> break
	od;
	h = 0;
	assert(FROM > 4 || proof[k] == 0); /* G2: no two tenures have one token */
	proof[k] = r
}

proctype Candidate(byte i) {
	byte token, last, at, pred;
	bit adopted;
#ifdef WATCH_WITHOUT_READ
	byte inplace;
#endif
#ifdef REQUEUE_KEEPS_PROOF
	byte proved;
#endif

idle:
	atomic {
		stands[i] = 0; waits[i] = 0; token = 0; at = 0; pred = 0;
		if
		:: lives > 0 || i == 0 /* candidates are alike: 0 is the first ever */
		:: goto quit
		fi
	}
register:
	/* One transaction: If create(own) = 0 Then Put, Range Else Get. */
	atomic {
		rev > 0;
		if
		:: key[i] == 0 && lives == LIVES -> goto quit
		:: key[i] == 0 && lives < LIVES ->
			lives++; rev++;
			key[i] = lives; owner[lives] = i;
			token = lives; at = rev; adopted = 0;
			printf("~ c%d begin key\n", i);
			printf("~ c%d call put key, who is older? => token %d\n", i, token);
		:: key[i] != 0 ->
			token = key[i]; adopted = 1;
			printf("~ c%d call register again => the key is there, token %d\n", i, token);
		fi;
		if
		:: skip
#ifndef STORY
		:: token != last -> /* the reply is lost: it is sent again */
			printf("~ c%d note reply lost\n", i);
			token = 0; at = 0; adopted = 0; goto register
#endif
		fi;
		if
#ifdef REQUEUE_KEEPS_PREDECESSOR
		:: !adopted && pred != 0 -> stands[i] = token
#endif
#ifdef REQUEUE_KEEPS_PROOF
		:: !adopted && proved != 0 -> stands[i] = token; at = proved; proved = 0; goto proven
		:: !adopted && proved == 0 ->
#elif defined(REQUEUE_KEEPS_PREDECESSOR)
		:: !adopted && pred == 0 ->
#else
		:: !adopted ->
#endif
			stands[i] = token;
			ahead(token, at, pred)
		:: adopted && token == last ->
#ifdef ADOPT_EARLIER_LIFE
			stands[i] = token; adopted = 0; goto ask
#else
			/* What an earlier standing left must not come back to life. */
			adopted = 0; token = 0; goto sweep
#endif
		:: adopted && token != last ->
			stands[i] = token; adopted = 0; goto ask
		fi
	}
	goto placed;
sweep:
	atomic {
		if
		:: key[i] == last -> remove(last)
		:: else
		fi;
		last = 0; goto register
	}

placed:
	/* As of revision at, pred is the nearest elder. */
	atomic {
		if
		:: pred == 0 -> goto proven
		:: else -> waits[i] = pred
		fi
	}
watch:
	/* The watch is put in place; then the key is read. The read may come late. */
#ifdef WATCH_WITHOUT_READ
	atomic { inplace = rev; printf("~ c%d note waits for token %d\n", i, pred) }
#else
	atomic {
		printf("~ c%d note waits for token %d\n", i, pred);
		if
		:: gone[pred] != 0 -> at = rev; waits[i] = 0; pred = 0; goto ask
		:: gone[pred] == 0
		fi
	}
#endif
wait:
	atomic {
		if
#ifdef WATCH_WITHOUT_READ
		:: gone[pred] > inplace ->
#else
		:: gone[pred] != 0 ->
#endif
			/* The event tells the revision of the deletion; after an
			 * interruption a read tells a later one. */
			if
			:: at = gone[pred]
			:: at = rev
			fi;
			waits[i] = 0; pred = 0;
			printf("~ c%d hears it is gone since %d\n", i, at)
		:: gone[token] != 0 -> /* the watch of the own key */
			printf("~ c%d hears own key is gone\n", i);
			goto idle
		:: gone[pred] == 0 -> /* later it is the same as before; and who waits in vain must be seen to */
			printf("~ c%d note withdraws\n", i); waits[i] = 0; pred = 0; goto leave
		:: gone[pred] == 0 && lives < LIVES -> /* it was asked to */
			printf("~ c%d note requeues\n", i);
#ifndef REQUEUE_KEEPS_PREDECESSOR
			pred = 0;
#endif
			waits[i] = 0; goto back
		fi
	}
#ifdef WIN_AT_DELETION
	atomic {
		/* The own key is still looked after, but nobody asks who else is older. */
		if
		:: !LIVED(token, at) -> goto idle
		:: else -> pred = 0; goto proven
		fi
	}
#endif
ask:
	/* One read at one revision: at, or the newest if that cannot be answered. */
#ifdef PROOF_IN_TWO_REQUESTS
	atomic {
		if
		:: gone[token] != 0 -> goto idle
		:: else -> printf("~ c%d call own key alive? => yes\n", i)
		fi
	}
#endif
	atomic {
		if
		:: at != 0 && at != rev -> skip
		:: at = rev
		fi;
		if
#ifdef PROOF_IN_TWO_REQUESTS
#elif defined(NO_OWN_KEY_CHECK)
#else
		:: !LIVED(token, at) ->
			printf("~ c%d call own key? who is older? => own key is gone\n", i);
			goto idle
#endif
		:: else ->
			ahead(token, at, pred);
			if
			:: pred == 0 ->
				printf("~ c%d call who is older at %d? => nobody\n", i, at)
			:: else ->
				printf("~ c%d call who is older at %d? => token %d\n", i, at, pred)
			fi;
			goto placed
		fi
	}

proven:
	/* The proof is in hand; any time may pass before it is acted upon. */
	atomic {
		if
		:: printf("~ c%d begin leads\n", i);
			printf("~ c%d note leads: token %d, proof at %d\n", i, token, at);
			led(i, token, at); at = 0
		:: gone[token] != 0 -> goto idle
#if !defined(STORY) || defined(REQUEUE_KEEPS_PROOF)
		:: lives < LIVES -> /* it yields */
			printf("~ c%d note has the proof, requeues\n", i);
#ifdef REQUEUE_KEEPS_PROOF
			proved = at;
#endif
			at = 0; goto back
#endif
		fi
	}
lead:
	do
	:: atomic { flying == 0 ->
			flying = token; sender = i;
			printf("~ c%d send w%d write, if token %d\n", i, token, token) }
	:: atomic { gone[token] != 0 ->
			printf("~ c%d end leads\n", i);
			printf("~ c%d hears own key is gone\n", i);
			goto idle }
	:: atomic {
			printf("~ c%d end leads\n", i);
			printf("~ c%d note resigns\n", i); /* or drains: the same, but the key may go much later */
			goto leave }
#ifdef REBIND
	/* One transaction puts the leader's key with the lease of another candidate, which
	 * leads from there on, and takes that one's own key away. */
	:: atomic { key[i] == token && key[1 - i] != 0 && stands[1 - i] == key[1 - i] ->
			v = 1 - i;
			printf("~ c%d end leads\n", i);
			printf("~ c%d call put own key with the lease of c%d => token %d stays\n", i, v, token);
			printf("~ c%d end key\n", i);
			rev++;
			gone[key[v]] = rev; key[v] = token; owner[token] = v; key[i] = 0;
			printf("~ c%d begin leads\n", v);
			printf("~ c%d note leads: token %d\n", v, token);
			led(v, token, rev);
			v = 0; goto quit }
#endif
	od;
back:
	/* As leave, but then it enters anew, at the end of the queue. */
	atomic {
		stands[i] = 0;
		if
		:: key[i] == token ->
			if
			:: remove(token);
				printf("~ c%d call delete key => done\n", i)
			:: last = token; /* the registration meets it, and sweeps it */
				printf("~ c%d call delete key => refused\n", i)
			fi
		:: else /* it went before */
		fi;
		token = 0; at = 0; goto register
	}
leave:
	/* If create(own) = token Then Delete(own). The standing has ended before. */
	atomic {
		stands[i] = 0;
		if
		:: key[i] == token ->
			if
			:: remove(token);
				printf("~ c%d call delete key => done\n", i)
			:: last = token;
				printf("~ c%d call delete key => refused\n", i)
			fi
		:: else /* it went before */
		fi;
		goto idle
	}
quit:
	atomic { last = 0; stands[i] = 0; finished[i] = 1 }
}

/*
 * A guarded write arrives: If create(leader's key) = token Then the caller's
 * transaction. What the caller's own compares say is anybody's guess.
 */
#define OK 1         /* told: applied */
#define OWN_FAILED 2 /* told: in the tenure, but the caller's own compare failed */
#define REFUSED 3    /* told: the tenure is over */
#define UNKNOWN 4    /* told: nobody knows */

#if defined(NO_GUARD)
#define GUARD(k) true
#elif defined(GUARD_BY_EXISTENCE)
#define GUARD(k) (key[owner[k]] != 0)
#else
#define GUARD(k) (key[owner[k]] == k)
#endif

inline arrives(k) {
	flying = 0; applier = sender; sender = 0;
	printf("~ etcd recv w%d\n", k);
	if
	:: GUARD(k) ->
		if
		:: told = OK; applied = 1;
			printf("~ etcd note applied\n");
			assert(FROM > 1 || (proof[k] != 0 && gone[k] == 0)); /* G4: a guarded operation commits inside its tenure */
			h = 1;
			do
			:: h <= lives ->
				assert(h <= k || proof[h] == 0); /* G4: nobody newer has been elected by then */
				h++
			:: else -> break
			od;
			h = 0;
			assert(applier == owner[k]) /* G4: it is applied in the tenure of the one that sent it */
		:: told = OWN_FAILED
		fi
	:: !GUARD(k) ->
#ifdef MERGED_COMPARES
		told = OWN_FAILED /* one If for all: which compare failed cannot be told */
#else
		told = REFUSED
#endif
	fi;
	if
	:: skip
	:: /* the reply is lost */
#if defined(UNKNOWN_IS_NO)
		told = REFUSED
#elif defined(UNKNOWN_IS_YES)
		told = OK
#else
		told = UNKNOWN
#endif
	fi;
	printf("~ c%d note told %d\n", applier, told);
	if
	:: told == OK -> assert(applied) /* G4: told that it was done, it was */
	:: told == OWN_FAILED -> assert(!applied && gone[k] == 0) /* G4: own compare failing is told from a lost tenure */
	:: told == REFUSED -> assert(!applied && gone[k] != 0) /* G4: a lost tenure is told only when it is lost, and nothing was done */
	:: told == UNKNOWN
	fi;
	told = 0; applied = 0; applier = 0
}

active proctype Etcd() {
	byte told, k, applier;
	bit applied;
	atomic {
		rev = 1;
		h = 0;
		do
		:: h < N -> run Candidate(h); h++
		:: else -> break
		od;
		h = 0
	}
end:
	do
	:: atomic { flying != 0 -> k = flying; arrives(k); k = 0 }
	od
}

/*
 * Keys that go without their candidate's doing: a lease expires or is revoked, an
 * operator deletes the key. The lease of one that has gone for good does end.
 */
#define OUTSIDE_OF(i) \
	:: atomic { key[i] != 0 && finished[i] -> v = key[i]; remove(v); v = 0 } \
	:: atomic { key[i] != 0 && !finished[i] && outside > 0 -> outside--; \
		printf("~ outside note key of c%d removed\n", i); v = key[i]; remove(v); v = 0 }

active proctype Outside() {
end:
	do
	OUTSIDE_OF(0)
	OUTSIDE_OF(1)
#if N > 2
	OUTSIDE_OF(2)
#endif
	od
}
