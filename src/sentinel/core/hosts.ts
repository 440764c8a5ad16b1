/**
 * Host names in the core: an address keeps the name it was given and the last IP that the name stood for.
 *
 * No look-up ever blocks: the core asks (effect `resolve`), goes on with what it knows, and takes the answer as an input.
 * Mirrors createSentinelAddr, sentinelAddrEqualsHostname, sentinelAddrOrHostnameEqual.
 */
import { isIpAddress } from '../wire/ip.js';
import type { Instance, NodeAddress, SentinelState } from './state.js';
import { restartLink, instancesOf } from './instance.js';
import type { Turn } from './turn.js';

/**
 * An address from text. Null when names are not allowed here (resolve-hostnames no) or the port is no port.
 * A name that was never looked up has ip '' and is asked for; the instance connects when the answer is there.
 */
export function makeAddress(turn: Turn, host: string, port: number): NodeAddress | null {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return null;
  if (isIpAddress(host)) return { host, ip: host, port };
  if (!turn.state.settings.resolveHostnames || host === '') return null;
  const ip = turn.state.hostIps.get(host.toLowerCase());
  if (ip === undefined) turn.effects.push({ kind: 'resolve', host });
  return { host, ip: ip ?? '', port };
}

/** Same port, and the same IP or the same name. */
export function sameNode(a: NodeAddress, b: NodeAddress): boolean {
  return a.port === b.port && (sameIp(a, b) || a.host.toLowerCase() === b.host.toLowerCase());
}

function sameIp(a: NodeAddress, b: NodeAddress): boolean {
  return a.ip !== '' && a.ip === b.ip;
}

/** Whether a host in somebody's text (INFO master_host, a hello) means this address's host. */
export function sameHost(state: Readonly<SentinelState>, address: NodeAddress, host: string): boolean {
  const ip = isIpAddress(host) ? host : state.hostIps.get(host.toLowerCase());
  return (ip !== undefined && ip !== '' && ip === address.ip) || host.toLowerCase() === address.host.toLowerCase();
}

/** Takes a look-up's answer: every instance of that name moves; a failed look-up changes nothing (the last IP is kept). */
export function applyResolved(turn: Turn, host: string, ip: string | null): void {
  if (ip === null) return;
  turn.state.hostIps.set(host.toLowerCase(), ip);
  for (const master of turn.state.masters.values()) {
    for (const instance of instancesOf(master)) moveTo(turn, instance, host, ip);
  }
}

function moveTo(turn: Turn, instance: Instance, host: string, ip: string): void {
  const { address, link } = instance;
  if (address.host.toLowerCase() !== host.toLowerCase() || address.ip === ip) return;
  instance.address = { ...address, ip };
  turn.state.touched.add(instance.kind === 'master' ? instance.name : instance.master);
  // A healthy connection stays, as in stock; one that doesn't answer goes to the new place at once.
  if (link.actPingMs === null) return;
  restartLink(turn, link);
}
