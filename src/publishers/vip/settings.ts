/**
 * A VIP as this agent is told to keep it: one address on one interface, held where the master's primary lives.
 */
import { isIPv6 } from 'node:net';

export interface VipSettings {
  readonly master: string;
  readonly ip: string;
  /** 32 or 128 unless somebody has a reason: with the subnet's own prefix, removing one address takes others along. */
  readonly prefix: number;
  readonly interface: string;
  readonly whenIsolated: 'release' | 'keep';
  /** `eth0:name` in old tools' output; IPv4 only. */
  readonly label: string | null;
  /** Ask the network first whether somebody has the address, and stay away then. */
  readonly dad: boolean;
}

/** The programs that this output starts, each with its first words; null where it is not installed. */
export interface VipPrograms {
  readonly ip: readonly string[];
  readonly arping: readonly string[] | null;
  readonly ndptool: readonly string[] | null;
}

export const isSix = ({ ip }: VipSettings): boolean => isIPv6(ip);

/** `10.0.0.100/32 on eth0`. */
export const vipText = ({ ip, prefix, interface: device }: VipSettings): string => `${ip}/${prefix} on ${device}`;
