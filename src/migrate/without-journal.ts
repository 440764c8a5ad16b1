/**
 * The way back when the journal is lost: what the sentinels know is undone, what only the journal knew is named.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError, messageOf } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';
import { pairsOf } from './fields.js';
import { Group } from './group.js';
import type { LinkSettings } from './links.js';
import { Links } from './links.js';

export interface Undone {
  readonly did: readonly string[];
  /** What an operator has to look at, in words. */
  readonly notRestored: readonly string[];
}

const ABORT_LIMIT_MS = 60_000;
const RETRY_MS = 500;
const COMMAND_LIMIT_MS = 30_000;
const WATCHED = ['replica-read-only', 'replica-priority', 'repl-backlog-size'] as const;

/** Rejects with AgentError AGENT_UNREACHABLE, or MOVE_FAILED when the window can't be ended. */
export async function abortWithoutJournal(settings: LinkSettings, master: string, contacts: readonly Address[]): Promise<Undone> {
  const links = new Links(settings);
  try {
    const group = new Group(links, master);
    const members = await group.discover(contacts);
    const did: string[] = [];
    const world = await group.world(members.sentinels, members.master);
    if (world.silent !== 'none' && world.silentTarget !== null) {
      await endWindow(group, members.sentinels, members.master, formatAddress(world.silentTarget));
      did.push(`clients are sent back to ${formatAddress(members.master)}; writes of the window at ${formatAddress(world.silentTarget)} are lost`);
    }
    for (const { sentinel, status } of await group.views(members.sentinels)) {
      if (status?.get('auto-revert') !== 'no') continue;
      await links.ask(sentinel, ['SENTINEL', 'SET', master, 'slave-can-auto-revert-to-configured-master', 'yes']);
      did.push(`sentinel ${formatAddress(sentinel)} puts replicas right again (slave-can-auto-revert-to-configured-master yes)`);
    }
    const notRestored = await Promise.all([members.master, ...members.replicas].map((address) => describeNode(links, address)));
    return { did, notRestored };
  } finally {
    links.close();
  }
}

async function endWindow(group: Group, sentinels: readonly Address[], original: Address, target: string): Promise<void> {
  const deadlineMs = performance.now() + ABORT_LIMIT_MS;
  let reason = '';
  for (let turn = 0; performance.now() < deadlineMs; turn++) {
    if ((await group.world(sentinels, original)).silent === 'none') return;
    const views = (await group.views(sentinels)).filter(({ status }) => status !== null);
    const view = views[turn % Math.max(1, views.length)];
    if (view !== undefined) {
      const argv = ['SENTINEL', 'SILENT-FAILOVER', group.master, target, 'abort'];
      await group.links.ask(view.sentinel, argv, COMMAND_LIMIT_MS).catch((fault: unknown) => (reason = messageOf(fault)));
    }
    await sleep(RETRY_MS);
  }
  throw new AgentError('MOVE_FAILED', `clients could not be sent back: ${reason}`);
}

async function describeNode(links: Links, address: Address): Promise<string> {
  const values = await Promise.all(WATCHED.map(async (name) => {
    const reply = await links.ask(address, ['CONFIG', 'GET', name]).catch(() => null);
    return `${name} ${pairsOf(reply).get(name) ?? 'unknown'}`;
  }));
  return `${formatAddress(address)} has ${values.join(', ')}: set it as you had it`;
}
