/*
 * The life of an offer: two offers of one person, their texts, the person's
 * messages, two replicas that decide, the agent, the carrier, the clock and two
 * executors, in every order there is.
 *
 *   spin -a offer.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   spin -a -DNOLOCK -DONLY=7 offer.pml ...    finds what goes wrong without the lock
 *
 * A decision is LOCK, two steps, UNLOCK: a statement as PostgreSQL runs it under
 * READ COMMITTED. The first step takes the snapshot, from which counts and NOT
 * EXISTS are answered; the second reads the row to be changed as it is by then,
 * compares the clock, and changes it. Under the lock nothing but the clock comes
 * between the two. Every other transaction is one step that waits for the lock.
 *
 * Ghosts (g_...) are what happened, kept beside the tables and read by
 * assertions alone.
 */

#define N 2            /* offers */
#define NOBODY 2       /* an offer that is none */
#define M 2            /* messages */
#ifndef MOST
#define MOST M         /* that come */
#endif
#ifndef DECISIONS
#define DECISIONS 1    /* of each of two replicas */
#endif
#define T 4            /* texts: a show of each, one more of either, and one that follows from it */

/* The names of offers.State; the test beside this file compares them. */
mtype:offer = { none, queued, sending, open, consumed, declined, modified,
                expired, withdrawn, superseded, undeliverable, lapsed };
mtype:text = { unused, waiting, away, accepted, rejected, unknown };
mtype:op = { asked, approved, running };

mtype:offer state[N] = none;
bool now[N];           /* present: now */
bool over[N];          /* the clock is past expires_at */
mtype:op op[N] = asked;

mtype:text text[T] = unused;
byte about[T];
bool again;            /* one more was put in line; once is enough to see what it does */
byte texts;

byte messages;         /* threads.messages: the newest message's number */
bool decided[M];
bool reads[M * N];     /* received_at >= asked_at + min_read, for this message and offer */

byte g_consumed[N];
byte g_begun[N];
byte g_used[M];        /* yeses that a message has given */
bool g_screen[M * N];  /* it was on the screen when the message came, and was not asked again since */

bool locked;
#ifdef NOLOCK
#define FREE   true
#define LOCK   skip
#define UNLOCK skip
#else
#define FREE   !locked /* a transaction of one step takes the lock and gives it back in it */
#define LOCK   atomic { !locked -> locked = true }
#define UNLOCK locked = false
#endif

hidden byte i, k, l;   /* scratch of one step */

/* check is an assertion with a number, so that a test can ask for one alone. */
#ifdef ONLY
#define check(n, x) assert(n != ONLY || (x))
#else
#define check(n, x) assert(x)
#endif

/* A condition of the yes, which a test takes out to see that it is missed. */
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define cond(n, x) (n == WITHOUT || (x))

#define live(o)   (state[o] == sending || state[o] == open)
#define closed(o) (state[o] != none && state[o] != queued && !live(o))
#define other(o)  (1 - (o))

/* forget clears what nobody asks of an offer that has ended, to keep the number of states down. */
inline forget(o) {
#if WITHOUT != 1
	reads[o] = false; reads[N + o] = false; g_screen[o] = false; g_screen[N + o] = false
#else
	skip
#endif
}

/* move changes an offer's state and holds it to the table of moves. */
inline move(o, to) {
	check(10, to != sending || state[o] == queued);
	check(10, to != open || state[o] == sending);
	check(10, to != consumed && to != declined && to != modified || state[o] == open);
	check(10, to != queued || state[o] == open || state[o] == sending);
	check(10, to != lapsed || state[o] == consumed || state[o] == queued);
	check(10, to == lapsed || !closed(o));
	if
	:: to == queued || to == sending || to == open
	:: else -> over[o] = false; now[o] = false; forget(o)
	fi;
	state[o] = to
}

/* put puts a text about an offer in line. */
inline put(o) {
	assert(texts < T);
	text[texts] = waiting; about[texts] = o; texts++
}

inline display(o) { move(o, sending); put(o) }

/* advance shows what is to be shown now, and the oldest of the queue if nothing is live. */
inline advance() {
	if :: state[0] == queued && now[0] && !over[0] -> display(0) :: else fi;
	if :: state[1] == queued && now[1] && !over[1] -> display(1) :: else fi;
	if
	:: !live(0) && !live(1) && state[0] == queued && !over[0] -> display(0)
	:: !live(0) && !live(1) && state[1] == queued && !over[1] && !(state[0] == queued && !over[0]) -> display(1)
	:: else
	fi
}

/* drop takes an ended offer's shows out of the line. */
inline drop(o) {
	i = 0;
	do
	:: i < texts -> if :: text[i] == waiting && about[i] == o -> text[i] = rejected :: else fi; i++
	:: else -> break
	od
}

inline close(o, to) { move(o, to); drop(o); advance() }

/* last is the highest text that is not rejected; T: there is none. */
inline last() {
	l = T; i = 0;
	do
	:: i < texts -> if :: text[i] != rejected -> l = i :: else fi; i++
	:: else -> break
	od
}

/* arrived: the provider has taken a text. Its offer opens, or its question was asked anew. */
inline arrived(x) {
	text[x] = accepted;
	k = 0;
	do
	:: k < M -> reads[k * N + about[x]] = false; g_screen[k * N + about[x]] = false; k++
	:: else -> break
	od;
	if :: state[about[x]] == sending -> move(about[x], open) :: else fi
}

/* lost: a text did not come through after all. */
inline lost(x) {
	text[x] = rejected;
	if :: !closed(about[x]) -> close(about[x], undeliverable) :: else -> advance() fi
}

active proctype Agent() {
	d_step { FREE -> state[0] = queued; advance() };
end:	do
	:: d_step { FREE && state[1] == none -> state[1] = queued; advance() }
	:: d_step { FREE && state[1] == none -> state[1] = queued; now[1] = true; advance() }
	:: d_step { FREE && state[1] == none && !closed(0) -> state[1] = queued; close(0, superseded) }
	:: d_step { FREE && state[1] == none && closed(0) && state[0] != consumed && state[0] != lapsed -> state[1] = queued; advance() }
	:: d_step { FREE && !closed(0) -> close(0, withdrawn) }
	:: d_step { FREE && state[1] != none && !closed(1) -> close(1, withdrawn) }
	od
}

#define SOME(s) (text[0] == s || text[1] == s || text[2] == s || text[3] == s)

/* The line: one text at a time leaves, and the provider answers, or not. */
active proctype Line() {
	byte x;
end:	do
	:: d_step { FREE && SOME(waiting) && !SOME(away) ->
			x = 0;
			do :: text[x] != waiting -> x++ :: else -> break od;
			text[x] = away
		};
		if
		:: d_step { FREE && (text[x] == away || text[x] == unknown) -> arrived(x) }
		:: d_step { FREE && (text[x] == away || text[x] == unknown) -> lost(x) }
		:: d_step { FREE && text[x] == away -> text[x] = unknown }
		:: skip /* the worker died, or a callback was faster */
		fi;
		x = 0
	od
}

/* A callback comes late, and may prove or undo what was believed of a text. */
active proctype Callback() {
end:	if
	:: d_step { FREE && (text[0] == away || text[0] == unknown) -> arrived(0) }
	:: d_step { FREE && (text[1] == away || text[1] == unknown) -> arrived(1) }
	:: d_step { FREE && text[0] != unused && text[0] != waiting && text[0] != rejected -> lost(0) }
	:: d_step { FREE && text[1] != unused && text[1] != waiting && text[1] != rejected -> lost(1) }
	fi
}

/* hears numbers a message and takes its time, under the lock. */
inline hears() {
	reads[messages * N] = (state[0] == open); reads[messages * N + 1] = (state[1] == open);
	g_screen[messages * N] = (state[0] == open); g_screen[messages * N + 1] = (state[1] == open);
	messages++
}

active proctype Person() {
end:	do
	:: d_step { FREE && messages < MOST -> hears() }
	od
}

/* A replica decides a message for the offer that it believes to be the one. What the words mean is for the reader to
 * say, which may be wrong, and may tell two replicas two things: any reading of any message is possible.
 */
active [2] proctype Replica() {
	byte m, o;
	byte s_newest, s_last = NOBODY;
	bool s_accepted, s_other, s_decided;
	byte tries;
end:	do
	:: tries < DECISIONS && messages > 0 ->
		tries++;
		LOCK;
		atomic { /* the snapshot */
			if :: m = 0 :: messages > 1 -> m = 1 fi;
			if :: o = 0 :: o = 1 fi;
			d_step {
				last();
				s_newest = messages;
				if :: l < T -> s_last = about[l]; s_accepted = (text[l] == accepted) :: else fi;
				s_other = live(other(o));
				s_decided = decided[m]
			}
		};
		if
		:: d_step { /* consume */
			cond(1, state[o] == open) && cond(2, !over[o]) && cond(3, reads[m * N + o]) &&
			cond(4, m + 1 == s_newest) && cond(5, s_last == o) && cond(6, s_accepted) &&
			cond(7, !s_other) && cond(8, !s_decided) ->

			check(1, state[o] == open && g_consumed[o] == 0);
			check(2, !over[o]);
			check(3, g_screen[m * N + o]);
			check(4, m + 1 == messages);
			last();
			check(5, l < T && about[l] == o);
			check(6, l < T && text[l] == accepted);
			check(7, !live(other(o)));
			check(8, g_used[m] == 0 && !decided[m]);
			g_consumed[o]++;
			g_used[m]++;

			decided[m] = true; op[o] = approved;
			move(o, consumed)
		}
		:: d_step { /* a no */
			state[o] == open && !over[o] && m + 1 == s_newest && s_last == o && !s_other && !s_decided ->
			check(9, !live(other(o)) && m + 1 == messages && !decided[m]);
			decided[m] = true; close(o, declined)
		}
		:: d_step { /* a change */
			state[o] == open && !over[o] && m + 1 == s_newest && s_last == o && !s_other && !s_decided ->
			check(9, !live(other(o)) && m + 1 == messages && !decided[m]);
			decided[m] = true; close(o, modified)
		}
		:: d_step { /* a number picks one of two: it is asked anew, alone */
			state[o] == open && !over[o] && live(other(o)) && !decided[m] && !again ->
			decided[m] = true; again = true;
			move(other(o), queued); drop(other(o)); put(o)
		}
		:: d_step { !decided[m] -> decided[m] = true } /* passed on: unclear, or the reader failed */
		:: skip /* refused, decided before, or the process died: the transaction left nothing */
		fi;
		d_step { UNLOCK; m = 0; o = 0; s_newest = 0; s_last = NOBODY; s_accepted = false; s_other = false; s_decided = false }
	od
}

/* resend puts the show of an offer in line once more, whose outcome nobody knows. */
inline resend(o) {
	i = 0;
	do
	:: i < texts && !(about[i] == o && (text[i] == away || text[i] == unknown)) -> i++
	:: else -> break
	od;
	if
	:: i < texts -> text[i] = unknown; again = true; put(o)
	:: else
	fi
}

/* Time passes by itself, lock or no lock; what it brings is done under the lock. */
active proctype Clock() {
end:	do
	:: state[0] != none && !over[0] && !closed(0) -> over[0] = true
	:: state[1] != none && !over[1] && !closed(1) -> over[1] = true
	:: d_step { FREE && over[0] && live(0) -> close(0, expired) }
	:: d_step { FREE && over[1] && live(1) -> close(1, expired) }
	:: d_step { FREE && over[0] && state[0] == queued -> close(0, lapsed) } /* or expired, once it was shown */
	:: d_step { FREE && over[1] && state[1] == queued -> close(1, lapsed) }
	:: d_step { FREE && state[0] == open && state[1] == queued && !over[1] && !again -> /* one gives way to the other */
		again = true; move(0, queued); display(1) }
	:: d_step { FREE && state[1] == open && state[0] == queued && !over[0] && !again -> again = true; move(1, queued); display(0) }
	:: d_step { FREE && op[0] == approved -> move(0, lapsed); op[0] = asked }
	:: d_step { FREE && op[1] == approved -> move(1, lapsed); op[1] = asked }
	:: d_step { FREE && state[0] == sending && !over[0] && !again && (SOME(away) || SOME(unknown)) -> resend(0) }
	:: d_step { FREE && state[1] == sending && !over[1] && !again && (SOME(away) || SOME(unknown)) -> resend(1) }
	:: d_step { FREE && (state[0] == queued || state[1] == queued) && !live(0) && !live(1) -> advance() }
	od
}

#define BEGIN(o) \
	d_step { FREE && op[o] == approved -> \
		check(11, g_consumed[o] == 1 && state[o] == consumed); \
		g_begun[o]++; check(11, g_begun[o] == 1); \
		op[o] = running }

active proctype Executor() {
end:	do
	:: BEGIN(0)
	:: BEGIN(1)
	od
}
