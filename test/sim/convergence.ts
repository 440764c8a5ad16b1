/**
 * I9: once the faults stop, all sentinels, Routes and nodes agree within a bounded time. Answers with every reason why they
 * do not: which sentinel thinks what, which node follows whom.
 */
import { formatAddress } from '../../src/sentinel/wire/address.js';
import type { Master } from '../../src/sentinel/index.js';
import type { GroupOptions } from './options.js';
import type { RedisNode } from './redis-node.js';
import type { SentinelHost } from './sentinel-host.js';
import type { World } from './world.js';

/** Longest time that healing may take in this world. */
export function convergenceLimitMs(world: World): number {
  const { groups, tunables } = world.options;
  const failoverMs = Math.max(...groups.map((group) => group.failoverTimeoutMs));
  const downMs = Math.max(...groups.map((group) => group.downAfterMs));
  // A leader that lives, but has forgotten by a restart which copies it had made, says nothing: for each of the copies the next one waits by rank.
  const nodes = Math.max(...groups.map((group) => group.replicas));
  const debtsMs = world.options.planned?.operations.includes('silent') === true ? failoverMs * world.options.sentinels * nodes : 0;
  return debtsMs + 6 * failoverMs + 4 * downMs + 2 * tunables.tiltPeriodMs + 6 * tunables.infoPeriodMs + world.options.redis.replTimeoutMs + 60_000;
}

/** Every reason why the world has not converged; empty when it has. */
export function whyNotConverged(world: World): string[] {
  return world.options.groups.flatMap((group) => {
    const nodes = world.nodes.filter((node) => world.groupOf(node.machine.ip) === group.name);
    const views = world.hosts.flatMap((host) => strayViews(world, host, group, nodes));
    return [...differingViews(world, group), ...views, ...strayNodes(world, group, nodes)];
  });
}

function primaryOf(world: World, group: GroupOptions): string | null {
  for (const host of world.hosts) {
    const route = host.state === null ? null : host.core.projectRoute(host.state, group.name);
    if (route !== null && route.primary !== null) return formatAddress(route.primary);
  }
  return null;
}

function differingViews(world: World, group: GroupOptions): string[] {
  const views = new Map<string, string[]>();
  for (const host of world.hosts) {
    const route = host.state === null ? null : host.core.projectRoute(host.state, group.name);
    const primary = route?.primary ?? null;
    const view = primary === null ? 'nothing' : `${formatAddress(primary)}@${route?.configEpoch ?? 0}`;
    views.set(view, [...(views.get(view) ?? []), host.name]);
  }
  if (views.size <= 1) return [];
  return [`${group.name}: ${[...views].map(([view, names]) => `${names.join(' ')} → ${view}`).join(', ')}`];
}

function strayViews(world: World, host: SentinelHost, group: GroupOptions, nodes: readonly RedisNode[]): string[] {
  const who = `${host.name} ${group.name}:`;
  const master = host.state?.masters.get(group.name);
  if (host.state === null || master === undefined) return [`${who} does not run`];
  const route = host.core.projectRoute(host.state, group.name);
  const reasons: string[] = [];
  if (host.state.tiltSinceMs !== null) reasons.push(`${who} in TILT`);
  if (route === null || !route.trusted) reasons.push(`${who} Route not trusted`);
  if (route !== null && !route.confirmed) reasons.push(`${who} Route not confirmed`);
  if (route !== null && route.phase !== 'steady') reasons.push(`${who} Route in phase ${route.phase}`);
  if (master.failover !== null) reasons.push(`${who} failover in ${master.failover.state}`);
  if (master.silent !== null) reasons.push(`${who} silent failover to ${master.silent.target} not ended`);
  if (master.debts.size > 0) reasons.push(`${who} resync debts of ${[...master.debts.keys()].join(' ')}`);
  if (master.odownSinceMs !== null) reasons.push(`${who} odown`);
  if (master.peers.size !== world.hosts.length - 1) reasons.push(`${who} knows ${master.peers.size} peers`);
  if (master.replicas.size !== nodes.length - 1) reasons.push(`${who} knows ${master.replicas.size} replicas`);
  return [...reasons, ...downInstances(who, master)];
}

function downInstances(who: string, master: Master): string[] {
  const down = [master, ...master.replicas.values(), ...master.peers.values()].filter((instance) => instance.sdownSinceMs !== null);
  return down.map((instance) => `${who} ${instance.kind} at ${instance.address.ip}:${instance.address.port} sdown`);
}

function strayNodes(world: World, group: GroupOptions, nodes: readonly RedisNode[]): string[] {
  const primary = primaryOf(world, group);
  const head = nodes.find((node) => `${node.machine.ip}:${node.machine.port}` === primary);
  if (head === undefined) return [`${group.name}: no node is at ${primary}`];
  if (head.isPaused) return [`${head.machine.name}: paused`];
  const data = head.log.values.join(' ');
  return nodes.flatMap((node) => {
    if (node === head) return node.master === null ? [] : [`${node.machine.name}: should be the master, is ${node.facts()}`];
    if (node.master === null || formatAddress(node.master) !== primary || !node.linkUp) return [`${node.machine.name}: ${node.facts()}`];
    // While clients write there is always a replica somewhere that has not heard the latest yet.
    return !world.isQuiet || node.log.values.join(' ') === data ? [] : [`${node.machine.name}: other data than ${head.machine.name}`];
  });
}
