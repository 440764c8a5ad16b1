/**
 * The silent state in the state file: lines of ours beside stock's, there only while they say something (section 3).
 *
 * `sentinel silent-failover-state <master> <target> <D> <initiator> <effective> <target run id> <original run id> <sync_full>
 * <done pending> <since> <taint>` and `sentinel silent-failover-debts <master> <node> <epoch> <read-only> …`; `-` = not known.
 */
import { millis } from '../../../time.js';
import type { Millis } from '../../../time.js';
import { formatAddress, parseAddress } from '../../wire/address.js';
import { quoteArg, splitArgs } from '../../wire/sentinel-conf.js';
import { isIpAddress } from '../../wire/ip.js';
import type { Master, SilentState } from '../state.js';
import { newDebt } from './debts.js';

export const STATE_KEY = 'silent-failover-state';
export const DEBTS_KEY = 'silent-failover-debts';

/** The lines of a master, key → rest, as the state file's `extra` has them. */
export function silentLines(master: Readonly<Master>): [string, string][] {
  const lines: [string, string][] = [];
  if (master.silent !== null) lines.push([STATE_KEY, stateWords(master.silent).map(quoteArg).join(' ')]);
  const debts = [...master.debts].flatMap(([key, debt]) => [key, String(debt.epoch), flag(debt.readOnly)]);
  if (debts.length > 0) lines.push([DEBTS_KEY, debts.map(quoteArg).join(' ')]);
  return lines;
}

function stateWords(silent: SilentState): string[] {
  const { host, port } = silent.targetAddress;
  return [
    formatAddress({ host, port }),
    String(silent.doneEpoch),
    flag(silent.initiator),
    flag(silent.effective),
    silent.targetRunId || '-',
    silent.originalRunId || '-',
    optional(silent.originalSyncFull),
    flag(silent.donePending),
    String(silent.sinceMs),
    silent.taint ?? '-',
  ];
}

const flag = (value: boolean): string => (value ? '1' : '0');
const optional = (value: number | null): string => (value === null ? '-' : String(value));
const word = (text: string | undefined): string => (text === undefined || text === '-' ? '' : text);
const number = (text: string | undefined): number | null => (text === undefined || !/^\d+$/.test(text) ? null : Number(text));

/** Takes the lines out of the master's extra settings into its state. A line that makes no sense is dropped. */
export function restoreSilent(master: Master, now: Millis): void {
  const take = (key: string): string[] => {
    const text = master.extraSettings.get(key);
    master.extraSettings.delete(key);
    return text === undefined ? [] : (splitArgs(text) ?? []);
  };
  restoreState(master, take(STATE_KEY), now);
  const debts = take(DEBTS_KEY);
  for (let at = 0; at + 2 < debts.length; at += 3) {
    const [key = '', epoch, readOnly] = debts.slice(at, at + 3);
    master.debts.set(key, { ...newDebt(number(epoch) ?? 0, now), readOnly: readOnly === '1' });
  }
}

function restoreState(master: Master, words: string[], now: Millis): void {
  const [targetText = '', doneEpoch, initiator, effective, targetRunId, originalRunId, syncFull, donePending, sinceMs, taint] = words;
  const target = parseAddress(targetText);
  const epoch = number(doneEpoch);
  if (target === null || epoch === null) return;
  master.silent = {
    target: formatAddress(target),
    targetAddress: { ...target, ip: isIpAddress(target.host) ? target.host : '' },
    targetRunId: word(targetRunId),
    doneEpoch: epoch,
    initiator: initiator === '1',
    effective: effective === '1',
    sinceMs: millis(number(sinceMs) ?? now),
    renewedMs: now,
    renewals: 0,
    lastWarnedMs: now,
    nextTryMs: millis(0),
    originalRunId: word(originalRunId),
    originalSyncFull: number(syncFull),
    baselineMs: null,
    targetSeen: true,
    sawAll: false,
    taint: word(taint) || null,
    donePending: donePending === '1',
    below: new Set(),
    promotedSinceMs: null,
    client: null,
    clientSinceMs: now,
  };
  // After a restart an unanswered vote counts from the restart.
  master.lastVoteMs = now;
}
