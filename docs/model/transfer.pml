/*
 * A transfer: who asks whom to requeue or to drain, and what the one who asks may
 * report (T). queue.pml shows that candidates may do both at any moment, whoever asks
 * for it, without harm to G1, G2, G4 and G5; so here the queue is kept simple: the
 * oldest key leads, sooner or later. What is here is in no proof of a win.
 *
 * A pause is a process that is not chosen to run. A request is obeyed or refused at any
 * later time, or never; whoever asks may give up at any time, and then the request stays
 * where it is. Candidates go, with their key and their mailbox, at any moment, and come
 * back at the end of the queue.
 *
 * Macros that break one step are under #ifdef; docs/model/check knows what each must
 * violate. Lines that begin with "~" are printed when a trail is replayed;
 * cmd/eldest/lab/modeltrace draws them.
 */
#ifndef N
#define N 4      /* candidates */
#endif
#ifndef LIVES
#define LIVES 9  /* keys ever created, by all */
#endif
#ifndef FAULTS
#define FAULTS 1 /* candidates that go though nobody asked them to */
#endif
#ifndef ASKERS
#define ASKERS 1
#endif

/* etcd: keys, and mailboxes. A life's number stands for its create revision. */
byte lives;
byte key[N];        /* the present life of each candidate's key; 0: none */
byte asked[N];      /* who put the request into the mailbox, 1 or 2; 0: it is empty */
byte what[N];       /* 0: requeue; else: drain for that life */
byte life[N];       /* the life of the key that the request is for */
byte answer[N];
#define NO_ANSWER 0
#define DONE 1
#define REFUSED 2

/* What candidates do. */
#define OUT 0       /* no key: it registers, or it does not */
#define WAITING 1
#define LEADING 2
#define CHECKED 3   /* leads; it has read that it may drain for successor */
#define DRAINED 4   /* leads no more, its key stands */
#define BACK 5      /* its old key is gone, the new one not there yet */
byte at[N];
byte successor;     /* the life for which a leader drained or is to; 0: none */

/* For the assertions only. */
bit  led[LIVES + 1];/* this life was a tenure */
byte moved;         /* how many went unasked, came in or came back in the middle of it */
byte faults = FAULTS;
byte h;             /* used within one step only */

/* Is a key there whose life is older than k, and younger than f? */
inline between(f, k, out) {
	d_step {
		out = 0; h = 0;
		do
		:: h < N && key[h] > f && key[h] < k -> out = 1; h++
		:: h < N && !(key[h] > f && key[h] < k) -> h++
		:: else -> break
		od;
		h = 0
	}
}

/* Does that life stand? */
inline queued(k, out) {
	d_step {
		out = 0; h = 0;
		do
		:: h < N -> out = out || key[h] == k; h++
		:: else -> break
		od;
		h = 0
	}
}

inline go(i) {
	key[i] = 0; asked[i] = 0; what[i] = 0; life[i] = 0; answer[i] = NO_ANSWER;
	printf("~ c%d end leads\n", i);
	printf("~ c%d end key\n", i)
}

inline answers(i, a) {
	answer[i] = a; life[i] = 0; what[i] = 0
}

inline enter(i) {
	lives++; key[i] = lives; at[i] = WAITING;
	printf("~ c%d begin key\n", i);
	printf("~ c%d call put key => token %d\n", i, lives)
}

proctype Candidate(byte i) {
	bit found;
end:
	do
	:: atomic { at[i] == OUT && lives < LIVES -> enter(i); moved = 1 }
	:: atomic { at[i] == WAITING ->
		between(0, key[i], found);
		if
		:: !found ->
			printf("~ c%d begin leads\n", i);
			printf("~ c%d note leads: token %d\n", i, key[i]);
			queued(successor, found);
			assert(successor == 0 || successor == key[i] || !found); /* T: who drains is followed by the one it drained for, if that one stands */
			successor = 0; found = 0; led[key[i]] = 1; at[i] = LEADING
		:: else -> found = 0
		fi }

	/* Its mailbox. */
	:: atomic { asked[i] != 0 && answer[i] == NO_ANSWER && what[i] == 0 &&
		(at[i] == WAITING || at[i] == LEADING) ->
		if
		:: at[i] == WAITING && life[i] == key[i] ->
			printf("~ c%d hears requeue\n", i);
			printf("~ c%d call delete key => done\n", i);
			printf("~ c%d end key\n", i);
			key[i] = 0; at[i] = BACK
		:: else -> answers(i, REFUSED)
		fi }
	:: atomic { at[i] == BACK && lives < LIVES -> enter(i); answers(i, DONE) }
	:: atomic { asked[i] != 0 && answer[i] == NO_ANSWER && what[i] != 0 &&
		(at[i] == WAITING || at[i] == LEADING) ->
		/* One read: does that life stand, and nobody in between? */
		printf("~ c%d hears drain for token %d\n", i, what[i]);
#ifdef NO_READ_BEFORE_DRAINING
		found = at[i] == LEADING;
#else
		queued(what[i], found);
		if
		:: found ->
			between(key[i], what[i], found);
			found = !found && at[i] == LEADING && life[i] == key[i]
		:: else
		fi;
#endif
		if
		:: found -> at[i] = CHECKED; found = 0
		:: else -> answers(i, REFUSED)
		fi }
	:: atomic { at[i] == CHECKED ->
		printf("~ c%d end leads\n", i);
		printf("~ c%d note drains\n", i);
		successor = what[i]; at[i] = DRAINED; answers(i, DONE) }
	/* The lead function has returned: it resigns. */
	:: atomic { at[i] == DRAINED ->
		printf("~ c%d call delete key => done\n", i);
		at[i] = OUT; go(i) }
	/* It withdraws, resigns, crashes, or its key is removed. */
	:: atomic { faults > 0 && at[i] != OUT -> faults--; moved = 1;
		printf("~ outside note c%d goes\n", i);
		at[i] = OUT; go(i) }
	od
}

#if defined(YOUNGEST_FIRST)
#define IN_TURN(j) (seen[j] > seen[l] && (past == seen[l] || seen[j] < past))
#define NEARER(j, c) (seen[j] > seen[c])
#elif defined(PASSES_BY)
#define IN_TURN(j) (seen[j] > past && seen[j] < seen[t])
#define NEARER(j, c) (seen[j] < seen[c])
#else
#define IN_TURN(j) (seen[j] > past)
#define NEARER(j, c) (seen[j] < seen[c])
#endif

/*
 * The one who asks. Oldest first: who is between the leader and the target, then, so that
 * these do not fall behind them, who is behind the target; the leader last.
 */
proctype Asker(byte me) {
	byte seen[N]; /* the survey, at one revision */
	byte l, t, c, j, past;

	atomic { /* who leads, and whoever is the target */
		if
		:: at[0] == LEADING -> l = 0
		:: at[1] == LEADING -> l = 1
		:: at[2] == LEADING -> l = 2
		fi;
		if
		:: key[0] > key[l] -> t = 0
		:: key[1] > key[l] -> t = 1
		:: key[2] > key[l] -> t = 2
#if N > 3
		:: key[3] > key[l] -> t = 3
#endif
		:: else -> goto quit
		fi;
		d_step {
			h = 0;
			do
			:: h < N -> seen[h] = key[h]; h++
			:: else -> break
			od;
			h = 0
		}
		printf("~ asker note asks c%d to lead after c%d\n", t, l);
		past = seen[l];
		between(past, seen[t], j); /* who is next in line already needs nobody to move */
		if
		:: j == 0 -> goto leader
		:: else -> moved = 0
		fi
	}
next:
	atomic {
		d_step { /* c: the oldest that is still to be asked; N: nobody is */
			c = N; j = 0;
			do
			:: j < N ->
				if
				:: j != t && IN_TURN(j) && (c == N || NEARER(j, c)) -> c = j
				:: else
				fi;
				j++
			:: else -> break
			od;
			j = 0
		}
		if
		:: c == N -> goto leader
		:: c != N && asked[c] == 0 && key[c] == seen[c] ->
			asked[c] = me; life[c] = seen[c]; past = seen[c];
			printf("~ asker call ask c%d to requeue => written\n", c)
		:: c != N && key[c] != seen[c] -> past = seen[c]; goto next /* it went, or moved by itself */
		:: c != N && asked[c] != 0 -> goto quit /* somebody else's request is there */
		:: c != N -> moved = 1; goto leader /* one that does not do its part: the leader looks for itself */
		fi
	}
	atomic {
		if
		:: asked[c] == me && answer[c] == DONE ->
			asked[c] = 0; answer[c] = NO_ANSWER; goto next
		:: asked[c] == me && answer[c] == REFUSED ->
			asked[c] = 0; answer[c] = NO_ANSWER; goto quit
#ifdef GOES_ON_AT_DELETION
		:: key[c] != seen[c] -> goto next
#else
		:: key[c] != seen[c] && (key[c] != 0 || asked[c] != me) -> goto next
#endif
		:: goto quit /* it has waited long enough, or it crashes */
		fi
	}
leader:
	atomic {
		if
		:: asked[l] == 0 && key[l] == seen[l] ->
			asked[l] = me; life[l] = seen[l]; what[l] = seen[t];
			printf("~ asker call ask c%d to drain for token %d => written\n", l, seen[t])
		:: else -> goto quit
		fi
	}
	atomic {
		if
		:: asked[l] == me && answer[l] == DONE ->
			asked[l] = 0; answer[l] = NO_ANSWER
		:: asked[l] == me && answer[l] == REFUSED ->
			asked[l] = 0; answer[l] = NO_ANSWER; goto quit
		:: asked[l] != me /* it is gone, and its mailbox */
		:: goto quit
		fi
	}
	atomic {
		if
#ifndef SUCCESS_WITHOUT_READ
		:: at[t] == LEADING && key[t] == seen[t] ->
#else
		:: true ->
#endif
			printf("~ asker note reports success\n");
			assert(led[seen[t]]); /* T: success is reported only after the target has led */
#if ASKERS == 1
			c = 0;
			do /* those whom nothing else befell stand as they stood */
			:: c < N && c != l && c != t && seen[c] != 0 ->
				j = c + 1;
				do
				:: j < N && j != l && j != t && seen[j] != 0 ->
					assert(moved || (seen[c] < seen[j]) == (key[c] < key[j])); /* T: who requeues keeps the order */
					j++
				:: j < N && !(j != l && j != t && seen[j] != 0) -> j++
				:: else -> break
				od;
				c++
			:: c < N && !(c != l && c != t && seen[c] != 0) -> c++
			:: else -> break
			od
#endif
		:: goto quit
		fi
	}
quit:
	skip
}

/* The queue stands in the order of the candidates' numbers; not all need to. */
active proctype Start() {
	atomic {
		do
		:: lives < N -> key[lives] = lives + 1; at[lives] = WAITING;
			printf("~ c%d begin key\n", lives);
			printf("~ c%d call put key => token %d\n", lives, lives + 1);
			lives++
		:: lives > 1 -> break
		od;
		h = 0;
		do
		:: h < N -> run Candidate(h); h++
		:: else -> break
		od;
		h = 0;
#if ASKERS > 1
		run Asker(2);
#endif
		run Asker(1)
	}
}
