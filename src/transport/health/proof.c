/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proof.c - when a silence or a refusal proves that a rank of another host has ended: one table, and why.
 *
 * Why     A verdict is final and everybody's: whoever is declared dead is dead for the whole job. So what can also come about
 *         while both ends live proves nothing, however often it comes.
 * Stream  One that ends without a goodbye proves nothing by itself: a process that ends closes its streams, but so does a box
 *         on the way that has forgotten them, and then both ends live, accuse each other, and tell the others. It makes its
 *         rank a suspect, whose door is knocked at (suspects.c).
 * Door    It is open from before anybody knew where until after the rank's goodbye. So:
 *             refused   nobody holds the door: the process has ended, by a death or by leaving. (A queue that is full does
 *                       not refuse, it drops what comes.)
 *             open      the kernel has taken the connection: the process lives, also when it is stopped
 *             ended     it was taken and has ended since: by the end of the process, or because strangers crowd the door and
 *                       somebody had to go. The kernel there lives in any case, so that silence proves nothing from here on
 *             silence   the host has gone, as a container's network goes with it; or what was asked was lost, or dropped at
 *                       a door that is crowded. One packet is lost now and then, three in a row over a third of a second are
 *                       not, where a stream has just ended that was well. Nothing else makes silence a proof, nor is it
 *                       one of a rank that its own host says is stopped
 *         A refusal of one whose streams have not ended proves nothing while its host speaks: it may have left, and whoever
 *         speaks there will say so.
 * Wall    A firewall that rejects may say it in two ways. A message that the port is unreachable, which ends no stream that is
 *         there, is told from a refusal by the port (port.h), and counts as NONE. A reset is what the kernel of an ended process sends, too,
 *         for the door and for each packet of its streams. So a refusal behind a stream that came to its own end, which no
 *         firewall makes up, is told as the end of the process; any other is told with the firewall that it may be.
 * Behind  Ranks of a host may leave together: the one that speaks says goodbye before it knows of the other, which has no
 *         streams, and so tells nobody. When nothing has come from a host since a goodbye, who is refused there has left.
 * First   Before there is a stream a rank may have ended in the first moments of the world, and then nothing but its door
 *         says so. But it may have left then, and what it said of that be on its way here: so it is dead when it
 *         refuses a second time, UNHEARD_MS later, and nobody has spoken for its host meanwhile. That somebody hears of it, who
 *         leaves sees to: it makes a stream for its goodbye with each host that it has had none with yet, and that could find its
 *         door shut, unless it has had others for so long that all have heard of it. It comes there before its door is shut, and
 *         what it says may be held up for as long as TCP tries: so a refusal is none while there is a stream with its host, or
 *         somebody from there is at our door (tcp/greeter.c). While the world is being made nobody is dead: who gives up joining
 *         shuts its door, too, and says why in the store.
 *
 *                    open      ended     refused    silence    none
 *         heard      -         -         -          -          -
 *         away       -         -         dead       -          -
 *         behind     -         -         left       -          -
 *         unheard    -         -         doubt      -          -
 *         cut        clear     again     dead       dead       again
 *         doubted    clear     again     dead       again      again
 */
#include "transport/health/proof.h"

static const unsigned char table[TTI_STANDINGS][TTI_SIGNS] = {
    [TTI_STANDING_AWAY] = { [TTI_SIGN_REFUSED] = TTI_RULING_DEAD_REFUSED },
    [TTI_STANDING_BEHIND] = { [TTI_SIGN_REFUSED] = TTI_RULING_LEFT },
    [TTI_STANDING_UNHEARD] = { [TTI_SIGN_REFUSED] = TTI_RULING_DOUBT },
    [TTI_STANDING_CUT] = { TTI_RULING_CLEAR, TTI_RULING_AGAIN, TTI_RULING_DEAD_REFUSED, TTI_RULING_DEAD_SILENT,
                           TTI_RULING_AGAIN },
    [TTI_STANDING_DOUBTED] = { TTI_RULING_CLEAR, TTI_RULING_AGAIN, TTI_RULING_DEAD_REFUSED, TTI_RULING_AGAIN,
                               TTI_RULING_AGAIN },
};

tti_ruling tti_rule(tti_standing standing, tti_sign sign)
{
    return (tti_ruling)table[standing][sign];
}
