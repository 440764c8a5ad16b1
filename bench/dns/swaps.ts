/**
 * A thousand changes of the zone while dnsperf asks at full speed: no query may be lost, and no answer be wrong or older than one before.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { encodeQuery } from '../../src/dns/encode.js';
import { knownName } from '../../src/dns/name.js';
import { TYPE } from '../../src/dns/record.js';
import { slice } from './dnsperf.js';
import type { Target } from './dnsperf.js';
import type { Servers } from './servers.js';
import { heard } from './servers.js';

const SWAPS = 1_000;

export interface Swaps {
  readonly swaps: number;
  readonly asked: number;
  readonly lost: number;
  readonly wrong: number;
  /** Answers that an own client checked byte by byte meanwhile. */
  readonly checked: number;
  readonly epochsSeen: number;
}

export async function swapUnderLoad(servers: Servers): Promise<Swaps> {
  const target = await servers.node('ours', '127.0.0.1', '100');
  const queries = servers.queriesFor('swaps', ['m0.redis.internal A', 'm0.redis.internal TXT', '_redis._tcp.m0.redis.internal SRV']);
  let isOver = false;
  const checked = check(target, () => isOver);
  target.child.stdin?.write(`swap ${SWAPS}\n`);
  const swapped = heard(target.child, 'swapped');
  const slices = [];
  let isSwapped = false;
  void swapped.then(() => (isSwapped = true));
  while (!isSwapped) slices.push(await slice(target, { seconds: 2, queries }));
  isOver = true;
  const { count, wrong, epochs } = await checked;
  return {
    swaps: SWAPS,
    asked: Math.round(slices.reduce((sum, { perSecond }) => sum + 2 * perSecond, 0)),
    lost: slices.reduce((sum, { lost }) => sum + lost, 0),
    wrong: wrong + slices.reduce((sum, each) => sum + each.wrong, 0),
    checked: count,
    epochsSeen: epochs,
  };
}

/** One question after the other: its TXT tells the epoch, which never falls. */
async function check({ host, port }: Target, isOver: () => boolean): Promise<{ count: number; wrong: number; epochs: number }> {
  const socket = createSocket('udp4');
  const name = knownName('m0.redis.internal.');
  let [count, wrong, last] = [0, 0, 0];
  const epochs = new Set<number>();
  while (!isOver()) {
    socket.send(encodeQuery(count & 0xffff, name, TYPE.TXT), port, host);
    const [reply] = (await once(socket, 'message', { signal: AbortSignal.timeout(5_000) })) as [Buffer];
    const epoch = Number(/epoch=(\d+) phase=steady/.exec(reply.toString('latin1'))?.[1] ?? NaN);
    if (!(epoch >= last)) wrong += 1;
    last = epoch;
    epochs.add(epoch);
    count += 1;
  }
  socket.close();
  return { count, wrong, epochs: epochs.size };
}
