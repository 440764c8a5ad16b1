/**
 * The operator's choices for planned moves, one master's: read from the extra lines of its state file (SENTINEL SET).
 */
import type { Master } from '../state.js';

export interface SilentSettings {
  /** The prepared state aborts by itself after this; 0 = it waits for `done` for ever. */
  readonly timeoutMs: number;
  /** Bytes the target may lag behind at prepare and at done. */
  readonly maxLagBytes: number;
  /** How long the last writes on the original may take to reach the target. */
  readonly drainTimeoutMs: number;
  readonly requireWritable: boolean;
  /** Stock peers in the group are tolerated. */
  readonly allowMixed: boolean;
  readonly fullResync: boolean;
  /** Whether a replica that follows another master is re-pointed (+fix-slave-config). */
  readonly autoRevert: boolean;
}

const MIB = 1024 * 1024;

export function silentSettings(master: Readonly<Master>): SilentSettings {
  const word = (key: string): string | undefined => master.extraSettings.get(key);
  const number = (key: string, standard: number): number => {
    const value = Number(word(key) ?? standard);
    return Number.isSafeInteger(value) && value >= 0 ? value : standard;
  };
  const yes = (key: string, standard: boolean): boolean => (word(key) ?? (standard ? 'yes' : 'no')).toLowerCase() === 'yes';
  return {
    timeoutMs: number('silent-failover-timeout', 0),
    maxLagBytes: number('silent-failover-max-lag', MIB),
    drainTimeoutMs: number('silent-failover-drain-timeout', 5_000),
    requireWritable: yes('silent-failover-require-writable', true),
    allowMixed: yes('silent-failover-allow-mixed', false),
    fullResync: yes('silent-failover-full-resync', true),
    autoRevert: yes('slave-can-auto-revert-to-configured-master', true),
  };
}
