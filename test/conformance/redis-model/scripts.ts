/**
 * What is done to modelled and to real servers: a table of scripts, a line per step.
 *
 * A step is `<node> <verb> …`; `@2` stands for the address of node 2. After each step both sides settle and are compared;
 * a step that begins with `~` is followed by the next one at once (only its reply is compared).
 *
 *     ask WORDS          a command on a connection of its own; `held` when nothing comes back in 400 ms
 *     all WORDS / WORDS  the same in a MULTI
 *     write N            N writes of a kilobyte each
 *     expiring MS        one write that expires
 *     listen, idle       a subscriber of channel `c`, a client that only stays
 *     script             an endless script
 *     stop, go, kill, start, start-empty, slow (it loads slowly from here on)
 *     wait MS            (node 0)
 */
export interface Script {
  readonly name: string;
  readonly nodes: 2 | 3;
  readonly steps: readonly string[];
}

const PAIR = ['1 write 3', '2 ask REPLICAOF @1'];
const CHAIN = [...PAIR, '3 ask REPLICAOF @2', '1 write 2'];
const STAR = [...PAIR, '3 ask REPLICAOF @1', '1 write 2'];
const ANEW = (target: string): string => `all REPLICAOF ${target} / REPLICAOF NO ONE / REPLICAOF ${target}`;

export const SCRIPTS: readonly Script[] = [
  {
    name: 'a replica, twice told, sent away and back', nodes: 2,
    steps: [
      ...PAIR, '2 ask REPLICAOF @1', '1 write 2', '2 ask REPLICAOF NO ONE', '2 ask REPLICAOF NO ONE', '2 write 1', '1 write 1',
      '2 ask REPLICAOF @1',
    ],
  },
  { name: 'a chain, its middle promoted', nodes: 3, steps: [...CHAIN, '2 ask REPLICAOF NO ONE', '2 write 1', '1 ask REPLICAOF @2', '2 write 1'] },
  {
    name: 'a fellow goes on with the promoted one by the second id', nodes: 3,
    steps: [
      ...STAR, '2 ask REPLICAOF NO ONE', '3 ask REPLICAOF @2', '1 ask REPLICAOF @2', '2 write 1',
    ],
  },
  {
    name: 'the old master has more than the promoted one', nodes: 3,
    steps: [
      ...STAR, '2 ask REPLICAOF NO ONE', '1 write 1', '2 write 1', '1 ask REPLICAOF @2', '3 ask REPLICAOF @2',
    ],
  },
  {
    name: 'a broken history makes a full copy', nodes: 3,
    steps: [
      ...STAR, `3 ${ANEW('@1')}`, '2 ask REPLICAOF NO ONE', `3 ${ANEW('@2')}`, `1 ${ANEW('@2')}`, '2 write 1',
    ],
  },
  {
    name: 'a broken history without the middle does not', nodes: 2,
    steps: [
      ...PAIR, '1 write 1', '2 all REPLICAOF NO ONE', '1 all REPLICAOF @2 / REPLICAOF @2',
    ],
  },
  {
    name: 'local writes on a writable replica live in no stream', nodes: 3,
    steps: [
      ...STAR, '2 write 1', '2 ask CONFIG SET replica-read-only no', '2 write 2', '1 write 1', '2 ask REPLICAOF NO ONE',
      '1 ask REPLICAOF @2', `3 ${ANEW('@2')}`, '2 write 1',
    ],
  },
  {
    name: 'a cut link goes on, a long absence costs a full copy', nodes: 2,
    steps: [
      ...PAIR, '1 ask CLIENT KILL TYPE replica', '2 stop', '~1 ask CLIENT KILL TYPE replica', '~1 write 60', '2 go', '1 write 1',
    ],
  },
  { name: 'a link that is cut at the master, and the master away', nodes: 2, steps: [...PAIR, '1 kill', '1 start', '1 write 1'] },
  { name: 'a master comes back empty', nodes: 3, steps: [...STAR, '1 kill', '1 start-empty', '1 write 1'] },
  {
    name: 'a replica comes back as its file says', nodes: 3,
    steps: [
      ...STAR, '2 ask CONFIG REWRITE', '2 kill', '1 write 1', '2 start', '3 kill', '3 start', '3 write 1',
    ],
  },
  {
    name: 'the middle of a chain goes away', nodes: 3,
    steps: [
      ...CHAIN, '1 kill', '2 ask CLIENT KILL TYPE replica', '2 ask REPLICAOF NO ONE', '1 start', '2 ask REPLICAOF @1',
    ],
  },
  {
    name: 'a chain is turned over', nodes: 3,
    steps: [
      ...CHAIN, '3 ask REPLICAOF @1', '2 ask REPLICAOF @3', '1 write 1', '3 ask REPLICAOF NO ONE', '3 write 1',
    ],
  },
  {
    name: 'writes and PUBLISH wait for the end of a pause', nodes: 2,
    steps: [
      ...PAIR, '2 listen', '1 ask PUBLISH c before', '~1 ask CLIENT PAUSE 60000 WRITE', '~1 ask SET 900 x', '~1 ask PUBLISH c during',
      '~1 ask PING', '~1 all SET 901 x',
      '1 ask CLIENT PAUSE 1 WRITE', '1 all REPLICAOF NO ONE', '1 ask CLIENT UNPAUSE', '1 write 1',
    ],
  },
  {
    name: 'the pause of one that follows', nodes: 2,
    steps: [
      ...PAIR, '~1 ask CLIENT PAUSE 60000 WRITE', '~1 ask SET 900 x', '2 ask REPLICAOF NO ONE', '1 ask REPLICAOF @2',
      '1 ask CLIENT UNPAUSE', '2 write 1',
    ],
  },
  {
    name: 'everything waits for the end of a full pause', nodes: 2,
    steps: [
      ...PAIR, '~1 ask CLIENT PAUSE 4000 ALL', '~1 ask PING', '~1 ask CLIENT UNPAUSE', '~1 ask PUBLISH c x', '0 wait 4000', '1 write 1',
    ],
  },
  {
    name: 'kinds of clients', nodes: 2,
    steps: [
      ...PAIR, '1 listen', '1 idle', '2 listen', '1 ask PUBLISH c one', '~1 ask CLIENT KILL TYPE pubsub', '~1 ask PUBLISH c two',
      '1 ask CLIENT KILL TYPE normal',
    ],
  },
  {
    name: 'a loading replica', nodes: 2,
    steps: [
      '1 write 40', '2 slow', '~2 ask REPLICAOF @1', '~0 wait 900', '~2 ask PING', '~2 ask PUBLISH c x', '~2 ask REPLICAOF NO ONE',
      '~2 ask SET 900 x', '~2 all REPLICAOF NO ONE',
      '~2 ask CONFIG REWRITE', '~2 ask CLIENT KILL TYPE pubsub', '0 wait 5000', '1 write 1',
    ],
  },
  {
    name: 'a script that does not end', nodes: 2,
    steps: [
      ...PAIR, '~1 script', '~1 ask PING', '~1 ask INFO', '~1 ask ROLE', '~1 ask REPLICAOF @2', '~1 ask PUBLISH c x', '~1 ask SET 900 x',
      '1 ask SCRIPT KILL', '1 ask SCRIPT KILL', '1 write 1',
    ],
  },
  {
    name: 'a stopped server', nodes: 2,
    steps: [
      ...PAIR, '1 stop', '~1 ask PING', '2 ask REPLICAOF NO ONE', '1 go', '1 write 1', '1 ask REPLICAOF @2',
    ],
  },
  {
    name: 'expiry comes from the master', nodes: 3,
    steps: [
      ...STAR, '1 expiring 300', '~1 expiring 700', '~2 ask REPLICAOF NO ONE', '2 write 1', '1 ask REPLICAOF @2',
    ],
  },
  {
    name: 'nothing expires under a pause', nodes: 2,
    steps: [
      ...PAIR, '~1 expiring 1500', '1 ask CLIENT PAUSE 60000 WRITE', '0 wait 1600', '2 ask REPLICAOF NO ONE', '1 ask CLIENT UNPAUSE',
    ],
  },
];
