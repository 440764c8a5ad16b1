/**
 * Steps 8 to 10: the window. prepare sends clients to the target, the drain closes what stays behind, done makes it real; abort is
 * the way back.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError, messageOf } from '../../errors.js';
import type { Address } from '../../sentinel/wire/address.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Context } from '../context.js';
import { allNodes, checkSignal, fail, waitUntil } from '../context.js';
import type { World } from '../decide.js';
import type { ClientLine, DrainMemory } from '../drain-rules.js';
import { beginDrain, describeClients, drainRound, parseClients } from '../drain-rules.js';
import { countWrites, infoFields, numberIn } from '../fields.js';
import { OWN_NAME, Refusal } from '../links.js';
import type { Facts } from '../move-state.js';
import { Absences } from './absences.js';

/** Longer than an election, and than three hello periods for the others to get ready. */
const COMMAND_LIMIT_MS = 30_000;
const PREPARE_LIMIT_MS = 45_000;
const DONE_LIMIT_MS = 90_000;
const ABORT_LIMIT_MS = 60_000;
const RETRY_MS = 500;
const ROUND_MS = 100;
const HURRIED_ROUND_MS = 20;
/** How often the drain asks the sentinels whether the window is still there. */
const LOOK_EVERY_MS = 1_000;
/** Beyond the TTL: a resolver's own rounding. */
export const TTL_GRACE_MS = 100;
/** Refusals that a busy moment explains, or that the next look settles. */
const PASSING = new RegExp([
  'list is changing', 'INFO was never read', 'no connection to it', 'its replication link is down', 'INFO is \\d+ ms old', 'did not report in time',
  'already in progress', 'NOQUORUM', 'it is read-only', 'lag', 'no sentinel answers', 'no answer in',
].join('|'), 'i');
/** Refusals that stay: a veto, a wrong group. */
const FINAL = /does not support silent failover|tainted|veto|hook/i;

/** One try of each sentinel in turn; the first that answers decides. */
async function command(context: Context, argv: readonly string[]): Promise<{ readonly ok: boolean; readonly text: string }> {
  let text = 'no sentinel answers';
  for (const sentinel of await aware(context)) {
    try {
      await context.links.ask(sentinel, argv, COMMAND_LIMIT_MS);
      return { ok: true, text: 'OK' };
    } catch (fault) {
      if (fault instanceof Refusal) return { ok: false, text: `${formatAddress(sentinel)}: ${fault.message}` };
      if (!(fault instanceof AgentError)) throw fault;
      text = fault.message;
    }
  }
  return { ok: false, text };
}

/** Sentinels that answer and know the extension. */
async function aware({ group, plan }: Context): Promise<Address[]> {
  return (await group.views(plan.sentinels)).filter(({ status }) => status !== null).map(({ sentinel }) => sentinel);
}

const worldOf = ({ group, plan }: Context): Promise<World> => group.world(plan.sentinels, plan.original);

export async function prepare(context: Context): Promise<Facts> {
  const { plan, hold } = context;
  context.probe.start();
  if (plan.barrier) await hold.start();
  const argv = ['SENTINEL', 'SILENT-FAILOVER', plan.master, formatAddress(plan.target), 'prepare'];
  let refusal = '';
  const deadlineMs = performance.now() + PREPARE_LIMIT_MS;
  for (;;) {
    checkSignal(context);
    if ((await worldOf(context)).silent === 'prepared') break;
    const { ok, text } = await command(context, argv);
    if (ok) break;
    refusal = text;
    context.say({ text: refusal });
    // Nobody was sent anywhere yet, so nobody waits for longer than a try takes.
    await hold.stop(true);
    if (FINAL.test(refusal) || !PASSING.test(refusal) || performance.now() > deadlineMs) throw fail(`prepare is refused: ${refusal}`);
    await sleep(RETRY_MS);
    if (plan.barrier) await hold.start();
  }
  const doneEpoch = await everybodyReady(context);
  const { outputs, ttlMs } = await acknowledged(context, 2 * doneEpoch - 1);
  await context.links.ask(plan.target, ['SET', context.marker, plan.id, 'EX', '86400']);
  context.say({ text: `waiting out a TTL of ${ttlMs} ms` });
  await sleep(ttlMs === 0 ? 0 : ttlMs + TTL_GRACE_MS);
  return { doneEpoch, outputs, ttlMs };
}

/** Every sentinel that answers has named the target; returns the done-epoch. */
async function everybodyReady(context: Context): Promise<number> {
  let doneEpoch = 0;
  await waitUntil(context, context.plan.publishTimeoutMs, 50, async () => {
    const views = await context.group.views(context.plan.sentinels);
    const behind = views.filter(({ status }) => status !== null && status.get('effective') !== '1').map(({ sentinel }) => formatAddress(sentinel));
    doneEpoch = Math.max(...views.map(({ status }) => (status === null ? 0 : numberIn(status, 'done-epoch'))));
    return behind.length === 0 && doneEpoch > 0 ? null : `${behind.join(', ') || 'no sentinel'} does not send clients to the target yet`;
  });
  return doneEpoch;
}

/** Every output of every agent that answers has published a Route of this order, or a newer one. */
export async function acknowledged(context: Context, order: number): Promise<{ readonly outputs: number; readonly ttlMs: number }> {
  let outputs = 0;
  let ttlMs = 0;
  await waitUntil(context, context.plan.publishTimeoutMs, 50, async () => {
    const states = await context.group.allOutputs(context.plan.sentinels);
    outputs = states.length;
    ttlMs = Math.max(0, ...states.map((each) => each.ttlMs));
    const late = states.filter((each) => each.state !== 'published' || each.publishedOrder < order);
    const words = late.map(({ name, sentinel, error, state }) => `output ${name} of ${formatAddress(sentinel)} is ${state}${error === '' ? '' : `: ${error}`}`);
    return words.length === 0 ? null : words.join('; ');
  });
  return { outputs, ttlMs };
}

interface Counters {
  readonly atMs: number;
  readonly commands: number;
  readonly writes: number;
}

export async function drain(context: Context): Promise<Facts> {
  const { plan, links, hold } = context;
  context.probe.start();
  if (plan.barrier) await hold.start();
  const writes = await writeCommands(context);
  const startMs = performance.now();
  let [memory, first, lookedMs, counters] = [null as DrainMemory | null, 0, startMs, null as Counters | null];
  let clients: ClientLine[] = [];
  for (;;) {
    checkSignal(context);
    if (performance.now() - lookedMs > LOOK_EVERY_MS) {
      lookedMs = performance.now();
      const world = await worldOf(context);
      if (world.silent !== 'prepared' || world.tainted !== '') return { cut: memory?.cut ?? 0, cutShort: 'the window has ended, or is tainted' };
    }
    const list = await links.text(plan.original, 'CLIENT', 'LIST').catch(() => null);
    // A dead old master: nobody is left there, and the sentinels decide what follows.
    if (list === null) {
      if (performance.now() - startMs > plan.drainTimeoutMs) return { cut: memory?.cut ?? 0, cutShort: `${formatAddress(plan.original)} does not answer` };
      await sleep(ROUND_MS);
      continue;
    }
    clients = parseClients(list, OWN_NAME);
    memory ??= beginDrain(clients);
    first = Math.max(first, clients.length);
    const round = drainRound(clients, memory, performance.now(), plan.barrier);
    memory = round.memory;
    for (const id of round.cut) await links.ask(plan.original, ['CLIENT', 'KILL', 'ID', String(id)]).catch(() => undefined);
    const before = counters;
    counters = await countersOf(context, writes).catch(() => counters);
    const writeRate = ratePerSecond(before, counters, 'writes');
    const commandRate = ratePerSecond(before, counters, 'commands');
    const part = first === 0 ? 1 : 1 - clients.length / first;
    context.say({ text: `${clients.length} of ${first} clients left, ${commandRate} commands/s, ${writeRate} writes/s`, part });
    if (round.verdict === 'empty' && (before === null || writeRate === 0)) return drained(memory, clients, startMs);
    const isLate = performance.now() - startMs > plan.drainTimeoutMs;
    if (round.verdict === 'pinned' || isLate) {
      const why = isLate ? `not drained in ${plan.drainTimeoutMs / 1000} s` : 'these come back each time they are cut, they do not follow the name';
      if (plan.onDrainTimeout === 'abort') throw fail(`${why}: ${describeClients(clients)} at ${formatAddress(plan.original)}`);
      return drained(memory, clients, startMs, why);
    }
    await sleep(plan.barrier ? HURRIED_ROUND_MS : ROUND_MS);
  }
}

function drained({ cut, newcomersCut }: DrainMemory, clients: readonly ClientLine[], startMs: number, why = ''): Facts {
  const left = why === '' ? {} : { left: describeClients(clients), why };
  return { cut, cameBack: newcomersCut, drainMs: Math.round(performance.now() - startMs), ...left };
}

/** Names of commands that change data, as the server itself tells them. */
async function writeCommands({ links, plan }: Context): Promise<ReadonlySet<string>> {
  const reply = await links.ask(plan.original, ['COMMAND']).catch(() => []);
  const rows = Array.isArray(reply) ? (reply as unknown[][]) : [];
  return new Set(rows.filter((row) => Array.isArray(row[2]) && row[2].map(String).includes('write')).map((row) => String(row[0])));
}

async function countersOf({ links, plan }: Context, writes: ReadonlySet<string>): Promise<Counters> {
  const stats = infoFields(await links.text(plan.original, 'INFO', 'stats'));
  const commandstats = await links.text(plan.original, 'INFO', 'commandstats');
  return { atMs: performance.now(), commands: numberIn(stats, 'total_commands_processed'), writes: countWrites(commandstats, writes) };
}

function ratePerSecond(before: Counters | null, now: Counters | null, field: 'commands' | 'writes'): number {
  if (before === null || now === null || now.atMs <= before.atMs) return 0;
  return Math.max(0, Math.round(((now[field] - before[field]) * 1000) / (now.atMs - before.atMs)));
}

/** Sends done until the target is the master; a leader that dies on the way is followed by another. */
export async function done(context: Context): Promise<Facts> {
  const { plan, hold } = context;
  const argv = ['SENTINEL', 'SILENT-FAILOVER', plan.master, formatAddress(plan.target), 'done'];
  const deadlineMs = performance.now() + DONE_LIMIT_MS;
  if (plan.barrier) await hold.start();
  let refusal = '';
  let sent = 0;
  for (;;) {
    checkSignal(context);
    const world = await worldOf(context);
    if (!sameAddress(world.master, plan.original)) {
      await hold.stop(true);
      return { sent };
    }
    if (world.silent !== 'prepared') throw fail(`the window has ended, the sentinels have sent clients back${refusal === '' ? '' : ` (${refusal})`}`);
    if (world.tainted !== '') throw fail(`the window is tainted: ${world.tainted}`);
    if (performance.now() > deadlineMs) throw fail(`done is refused: ${refusal || 'the switch did not happen'}`);
    const reply = world.failingOver ? null : await command(context, argv);
    if (reply !== null) {
      sent++;
      if (!reply.ok) refusal = reply.text;
      context.say({ text: reply.ok ? 'elected; the switch has begun' : reply.text });
      if (!reply.ok && (FINAL.test(reply.text) || !PASSING.test(reply.text))) {
        if ((await worldOf(context)).silent === 'prepared') throw fail(`done is refused: ${reply.text}`);
      }
    }
    await sleep(reply?.ok === true ? 50 : RETRY_MS);
  }
}

/** The way back out of a window: clients go to the old master again; the window's writes are gone. */
export async function abort(context: Context): Promise<Facts> {
  const { plan, hold } = context;
  await hold.stop(true);
  const argv = ['SENTINEL', 'SILENT-FAILOVER', plan.master, formatAddress(plan.target), 'abort'];
  const deadlineMs = performance.now() + ABORT_LIMIT_MS;
  let refusal = '';
  for (;;) {
    const world = await worldOf(context);
    if (!sameAddress(world.master, plan.original) || world.silent === 'none') break;
    if (performance.now() > deadlineMs) throw fail(`clients could not be sent back: ${refusal}`);
    const { ok, text } = await command(context, argv);
    if (!ok) refusal = text;
    context.say({ text: ok ? 'elected; clients are sent back' : text });
    await sleep(ok ? 50 : RETRY_MS);
  }
  const problems: string[] = [];
  // The target's copy sets replica-read-only: what is put back after it stays.
  const absences = new Absences(context.links);
  const whyNotCopied = async (): Promise<string | null> => {
    const open: string[] = [];
    for (const name of await context.group.debts(plan.sentinels)) {
      const address = allNodes(plan).find((each) => formatAddress(each) === name) ?? plan.target;
      const isThere = await context.links.isAlive(address);
      if (isThere) absences.answered(address);
      if (isThere || !(await absences.isGivenUp(address))) open.push(name);
    }
    return open.length === 0 ? null : `${open.join(', ')} still copies in full`;
  };
  await waitUntil(context, plan.resyncTimeoutMs, 200, whyNotCopied).catch((fault: unknown) => void problems.push(messageOf(fault)));
  return { problems: [...problems, ...absences.problems()] };
}
