/**
 * From the vip block of pointsman.yaml to its publisher: programs, who is down, and what can't work.
 */
import { existsSync } from 'node:fs';
import type { PointsmanConfig, VipSection } from './config/config.js';
import { programPath } from './find-program.js';
import type { Log } from './log.js';
import type { VipPrograms, VipSettings } from './publishers/vip/settings.js';
import { isSix } from './publishers/vip/settings.js';
import { VipPublisher } from './publishers/vip/vip-publisher.js';
import type { SentinelState } from './sentinel/index.js';
import type { Address } from './sentinel/wire/address.js';
import { sameAddress } from './sentinel/wire/address.js';

export interface VipWiring {
  readonly config: PointsmanConfig;
  readonly state: SentinelState;
  readonly isFenced: (master: string) => boolean;
  readonly wake: (master: string) => void;
  readonly log: Log;
}

/** Linux' limit for the name of an interface, and for a label. */
const LONGEST_LABEL = 15;

/** Null without a vip block. */
export function makeVipPublisher({ config, state, isFenced, wake, log }: VipWiring): VipPublisher | null {
  if (config.vip.length === 0) return null;
  const programs = vipPrograms();
  return new VipPublisher({
    vips: config.vip.map(settingsOf),
    programs: { ...programs, ip: programs.ip ?? ['ip'] },
    isKnownDown: (master, address) => isKnownDown(state, master, address),
    isFenced, wake, log,
  });
}

/** Faults and warnings that the schema can't see, one line each; `masters` are those of sentinel.conf. */
export function judgeVips(vips: readonly VipSection[], masters: readonly { readonly name: string; readonly host: string }[]): {
  readonly faults: string[];
  readonly warnings: string[];
} {
  const faults: string[] = [];
  const warnings: string[] = [];
  const { ip, arping, ndptool } = vipPrograms();
  if (vips.length > 0 && ip === null) faults.push('vip: ip is not installed (Debian: iproute2)');
  for (const [index, section] of vips.entries()) {
    const vip = settingsOf(section);
    const place = `vip[${index}]`;
    if (!masters.some(({ name }) => name === vip.master)) faults.push(`${place}.master: no master named "${vip.master}" is monitored`);
    if (masters.some(({ host }) => host === vip.ip)) faults.push(`${place}.address: ${vip.ip} is a master's own address`);
    if (vip.label !== null && `${vip.interface}:${vip.label}`.length > LONGEST_LABEL) {
      faults.push(`${place}.label: "${vip.interface}:${vip.label}" is longer than ${LONGEST_LABEL} characters`);
    }
    if (vip.label !== null && isSix(vip)) warnings.push(`${place}.label: has no effect on an IPv6 address`);
    if (vip.prefix !== (isSix(vip) ? 128 : 32)) {
      warnings.push(`${place}.address: with /${vip.prefix} the removal of another address of the subnet may take the vip along; /${isSix(vip) ? 128 : 32} does not`);
    }
    if (!existsSync(`/sys/class/net/${vip.interface}`)) warnings.push(`${place}.interface: there is no interface ${vip.interface} on this host now`);
    if (!isSix(vip) && arping === null) warnings.push(`${place}: arping is not installed (Debian: iputils-arping), clients find a new holder half a minute late`);
    if (isSix(vip) && ndptool === null) warnings.push(`${place}: ndptool is not installed (Debian: libndp-tools), clients find a new holder 1-2 s late`);
  }
  return { faults, warnings };
}

function settingsOf({ address, ...rest }: VipSection): VipSettings {
  const [ip = '', prefix = ''] = address.split('/');
  return { ...rest, ip, prefix: Number(prefix) };
}

/** This sentinel's own verdict; the dead primary is still the master's record while a failover is under way. */
function isKnownDown(state: SentinelState, name: string, address: Address): boolean {
  const master = state.masters.get(name);
  if (master === undefined) return false;
  const instances = [master, ...master.replicas.values()];
  return instances.some((instance) => sameAddress(instance.address, address) && instance.sdownSinceMs !== null);
}

function vipPrograms(): { [name in keyof VipPrograms]: readonly string[] | null } {
  const find = (name: string): readonly string[] | null => {
    const path = programPath(name);
    return path === null ? null : [path];
  };
  return { ip: find('ip'), arping: find('arping'), ndptool: find('ndptool') };
}
