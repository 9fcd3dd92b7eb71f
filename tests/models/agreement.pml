/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement.pml - who goes on after a failure: the votes of src/regroup/agreement.c and agreement_lead.c.
 *
 * Model   Members promise and vote; each of LEADERS leads for TURNS ballots at most, at any time, asks whom it reaches, and
 *         is reached by those it likes: that a member is dead, stopped or cut off, and that a message is lost, is that it is
 *         not asked. A leader may die between any two steps. What a member does at a message is one step.
 * Says    At most one value is decided.
 * Checks
 *
 *   holds  -DN=3 -DLEADERS=2 -DTURNS=2
 *   holds  -DN=3 -DLEADERS=3 -DTURNS=1
 *   holds  -DN=4 -DLEADERS=2 -DTURNS=1
 *   wrong  -DN=3 -DLEADERS=2 -DTURNS=1 -DNO_QUORUM    whoever is reached may go on
 *   wrong  -DN=4 -DLEADERS=2 -DTURNS=1 -DANY_HALF     so may half of them, whichever
 *   wrong  -DN=3 -DLEADERS=2 -DTURNS=1 -DFORGETS      a leader looks at no earlier votes
 *   wrong  -DN=3 -DLEADERS=2 -DTURNS=1 -DNO_PROMISE   members vote in lower ballots than they have promised
 *   wrong  -DN=3 -DLEADERS=3 -DTURNS=1 -DKEEPS_ALONE  a value is kept without votes for that
 *   wrong  -DN=3 -DLEADERS=2 -DTURNS=1 -DMOST_VOTE    a new value needs the votes of a quorum only
 */
#define ALL ((1 << N) - 1)
#define BIT(i) (1 << (i))
#define BALLOT(round, who) ((round) * 8 + (who) + 1)

byte promised[N];
byte accepted[N]; /* the ballot of the last vote */
byte origin[N];   /* the ballot in which what it voted for was new */
byte value[N];
byte decided;     /* 0: nothing yet */

/* tti_agree_quorum(): member 0 counts three, the others two. */
inline weigh(set, yes)
{
    d_step {
        w = ((set & 1) != 0 -> 1 : 0);
        j = 0;
        do
        :: j < N -> w = w + ((set & BIT(j)) != 0 -> 2 : 0); j++ /* = regroup/agreement.c: weight += set[r] ? 2 : 0; */
        :: else -> break
        od;
#ifdef NO_QUORUM
        yes = 1;
#elif defined(ANY_HALF)
        yes = w >= N;
#else
        yes = w > N; /* = regroup/agreement.c: return weight > a->n; */
#endif
        j = 0; w = 0
    }
}

inline decide(v)
{
    atomic { assert(decided == 0 || decided == v); decided = v }
}

/* find_bound(): the vote of the highest ballot that may have been decided; 0: none. */
inline find_bound()
{
    d_step {
        bound = 0; limit = 255;
#ifndef FORGETS
        do
        :: limit == 0 || bound != 0 -> break
        :: else ->
            best = 0; j = 0;
            do
            :: j < N ->
                if
                :: (with & BIT(j)) && seen[j] > best && seen[j] < limit -> best = seen[j]; at = j /* = regroup/agreement_lead.c: if (!with[r] || k <= best || k >= limit) */
                :: else
                fi;
                j++
            :: else -> break
            od;
            limit = best;
            if
            :: best == 0
            :: best != 0 && seen_origin[at] != best -> bound = seen_value[at]; from = seen_origin[at]
            :: best != 0 && seen_origin[at] == best ->
                /* may_be_decided() */
                all = 1; j = 0;
                do
                :: j < N ->
                    if
                    :: (seen_value[at] & with & BIT(j)) && seen[j] != best -> all = 0 /* = regroup/agreement_lead.c: if (value[r] && with[r] && (r == a->rank ? a->accepted : a->members[r].accepted) != k) */
                    :: else
                    fi;
                    j++
                :: else -> break
                od;
                if
                :: all -> bound = seen_value[at]; from = best
                :: else
                fi
            fi
        od;
#endif
        j = 0; at = 0; best = 0; limit = 0; all = 0
    }
}

proctype Leader(byte me)
{
    byte round, b, with, votes, bound, from, i, j, w, best, at, limit, v;
    bool yes, all;
    byte seen[N], seen_origin[N], seen_value[N];

    do
    :: round < TURNS ->
        round++;
        /* ask(): higher than what it has promised itself */
        atomic {
            b = BALLOT(promised[me] / 8 + 1, me);
            promised[me] = b; /* = regroup/agreement_lead.c: a->promised = a->ballot; */
            with = BIT(me)
        }
        i = 0;
        do
        :: i < N ->
            if
            :: i != me ->
                atomic {
                    if
                    :: promised[i] < b -> /* = regroup/agreement.c: if (m->ballot < a->promised) { */
                        promised[i] = b; /* = regroup/agreement.c: a->promised = m->ballot; */
                        with = with | BIT(i);
                        seen[i] = accepted[i]; seen_origin[i] = origin[i]; seen_value[i] = value[i]
                    :: true
                    fi
                }
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        /* conclude() */
        atomic {
            seen[me] = accepted[me]; seen_origin[me] = origin[me]; seen_value[me] = value[me];
            weigh(with, yes);
            find_bound();
            v = (bound != 0 -> bound : with);
            if
            :: promised[me] != b -> yes = 0 /* it has promised somebody else: tti_agree_yield() */
            :: else
            fi;
            votes = 0;
            if
            :: yes && bound != 0 -> /* recover() votes at once */
#ifdef KEEPS_ALONE
                decide(v); yes = 0
#else
                accepted[me] = b; origin[me] = from; value[me] = v; votes = BIT(me)
#endif
            :: else
            fi;
            if
            :: bound == 0 -> from = b
            :: else
            fi
        }
        /* propose() */
        do
        :: yes && i < N ->
            if
            :: i != me && (with & BIT(i)) ->
                atomic {
                    if
#ifdef NO_PROMISE
                    :: true ->
#else
                    :: promised[i] <= b -> /* = regroup/agreement.c: if (m->ballot < a->promised) { */
#endif
                        promised[i] = b;
                        accepted[i] = b; origin[i] = from; value[i] = v;
                        votes = votes | BIT(i)
                    :: true
                    fi
                }
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        atomic {
            if
            :: yes && from != b -> weigh(votes, yes); if :: yes -> decide(v) :: else fi
#ifdef MOST_VOTE
            :: yes && from == b -> votes = votes | BIT(me); weigh(votes, yes); if :: yes -> accepted[me] = b; origin[me] = b; value[me] = v; decide(v) :: else fi
#else
            :: yes && from == b && (votes | BIT(me)) == v && promised[me] == b -> /* = regroup/agreement_lead.c: if (!a->vain && a->own_built && all_answered(a)) { */
                accepted[me] = b; origin[me] = b; value[me] = v; /* = regroup/agreement_lead.c: a->accepted = a->origin = a->ballot; */
                decide(v)
#endif
            :: else
            fi;
            with = 0; votes = 0; v = 0; from = 0; bound = 0; yes = 0; b = 0
        }
        d_step {
            j = 0;
            do
            :: j < N -> seen[j] = 0; seen_origin[j] = 0; seen_value[j] = 0; j++
            :: else -> break
            od;
            j = 0
        }
    :: true -> break /* it has died, or leaves */
    od
}

init
{
    byte k;

    atomic {
        do
        :: k < LEADERS -> run Leader(k); k++
        :: else -> break
        od
    }
}
