/**
 * Why an acknowledged write is gone: by where the histories of the nodes parted.
 *
 * Every node is asked several times a second, by a Unix socket that no cut reaches, for its replication id and offset. A
 * promoted replica starts a new id and says at which offset it left the old one (`second_repl_offset`): what the old master took beyond
 * that had reached nobody who was chosen. So a loss is allowed when (1) the write may lie beyond a fork of the final
 * history, or in a branch that is no part of it, and (2) a fault of the lab on that very node explains the fork. Writes of a
 * silent window live on the target alone, in no replication stream: they are judged by how the window ended. All else is a failure.
 */

/** Numbers `first..last` of a ledger, acknowledged together; times by the wall clock, in ms. */
export interface Receipt {
  readonly key: string;
  readonly first: number;
  readonly last: number;
  /** The node's IP address. */
  readonly host: string;
  readonly sentMs: number;
  readonly acknowledgedMs: number;
}

/** What a node said of itself. It held between the two times. */
export interface Sample {
  readonly askedMs: number;
  readonly answeredMs: number;
  readonly runId: string;
  readonly role: 'master' | 'slave';
  readonly replid: string;
  readonly offset: number;
  /** The history before a promotion, up to `secondOffset` (exclusive); all zeros = none. */
  readonly replid2: string;
  readonly secondOffset: number;
}

/** A fault of the lab. `hosts`: IP addresses of the nodes that were hit, or cut off from the majority of the agents. */
export interface Disturbance {
  readonly title: string;
  readonly kind: 'crash' | 'partition';
  readonly hosts: readonly string[];
  readonly startMs: number;
  /** Infinity while it lasts. */
  endMs: number;
}

/** A process that was started again. */
export interface Restart {
  readonly host: string;
  readonly atMs: number;
  readonly keptData: boolean;
}

/** A silent move, from the operator's `prepare` until no agent was prepared any more. */
export interface SilentWindow {
  readonly target: string;
  readonly original: string;
  readonly startMs: number;
  endMs: number;
  /** The operator sent an abort that was accepted. */
  wasAborted: boolean;
}

export interface History {
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  readonly disturbances: readonly Disturbance[];
  readonly restarts: readonly Restart[];
  readonly windows: readonly SilentWindow[];
}

/** `aborted`: the window of a silent move that was aborted. */
export type LossKind = 'crash' | 'partition' | 'aborted' | 'unexplained';

export interface Verdict {
  readonly kind: LossKind;
  readonly reason: string;
}

/** A part of the final history: everything of `replid` up to `upTo`. */
interface Segment {
  readonly replid: string;
  readonly upTo: number;
  /** When the next segment was first seen; Infinity for the present one. */
  readonly leftMs: number;
  /** How it was left. */
  readonly how: string;
  /** The node that came back without data and was followed: nothing of this segment was kept, whoever took it. */
  readonly emptiedBy: string | null;
  /** Left by a restart with data: until when everything was surely on disk. A master that nobody ever copied stays at offset 0, so offsets tell nothing of it. */
  readonly keptUntilMs?: number;
}

const NO_HISTORY = /^0*$/;
/** While an fsync is under way, Redis keeps what it has acknowledged in memory, for two seconds at most (appendfsync everysec). */
const UNWRITTEN_MS = 2_500;
/** After the end of a fault the group may need this long to act on it: to fail over, to convert a stale master. */
const AFTERMATH_MS = 20_000;
/** After the end of a silent move, until other nodes have copied the target in full. */
const COPY_MS = 60_000;

/** The history of the node that is the master in the end, newest segment first. */
export function finalHistory(history: History, master: string): Segment[] {
  const segments: Segment[] = [];
  let emptiedMs = 0;
  const last = history.samples.get(master)?.at(-1);
  let emptiedBy: string | null = null;
  let next: Segment | null = last === undefined ? null : { replid: last.replid, upTo: Infinity, leftMs: Infinity, how: 'present', emptiedBy };
  while (next !== null && !segments.some(({ replid }) => replid === next?.replid)) {
    // What was lost with the emptied node was inherited from older segments, too: they were lost then, not when they were left.
    if (emptiedBy === null && next.emptiedBy !== null) [emptiedBy, emptiedMs] = [next.emptiedBy, next.leftMs];
    segments.push(emptiedBy === null ? next : { ...next, upTo: 0, emptiedBy, leftMs: Math.max(next.leftMs, emptiedMs) });
    next = parentOf(history, next.replid);
  }
  return segments;
}

/** The history out of which the first master with this id came; null when it came out of nothing that was seen. */
function parentOf({ samples, restarts }: History, replid: string): Segment | null {
  const births = [...samples].flatMap(([host, all]) => {
    const at = all.findIndex((sample) => sample.replid === replid && sample.role === 'master');
    const sample = all[at];
    return sample === undefined ? [] : [{ host, sample, earlier: all.slice(0, at) }];
  });
  const [birth] = births.sort((a, b) => a.sample.answeredMs - b.sample.answeredMs);
  if (birth === undefined) return null;
  const { host, sample, earlier } = birth;
  const leftMs = sample.answeredMs;
  if (!NO_HISTORY.test(sample.replid2)) {
    return { replid: sample.replid2, upTo: sample.secondOffset - 1, leftMs, how: `${host} was promoted`, emptiedBy: null };
  }
  // A new id out of nothing: the process is new, and holds what it had on disk.
  const restart = restarts.findLast((each) => each.host === host && each.atMs <= leftMs);
  const before = earlier.at(-1);
  if (restart === undefined || before === undefined) return null;
  const how = `${host} was started again ${restart.keptData ? 'with its data' : 'without data'}`;
  if (!restart.keptData) return { replid: before.replid, upTo: 0, leftMs, how, emptiedBy: host };
  const written = earlier.findLast(({ answeredMs }) => answeredMs <= before.answeredMs - UNWRITTEN_MS);
  const isSame = written?.replid === before.replid;
  return { replid: before.replid, upTo: isSame ? written.offset : 0, leftMs, how, emptiedBy: null, keptUntilMs: isSame ? written.askedMs : 0 };
}

/** Why the write is not in the history of `master`. */
export function judgeLoss(receipt: Receipt, history: History, segments: readonly Segment[]): Verdict {
  const all = history.samples.get(receipt.host) ?? [];
  const before = all.findLast((sample) => sample.answeredMs <= receipt.sentMs);
  const after = all.find((sample) => sample.askedMs >= receipt.acknowledgedMs);
  const around = [before, after].filter((sample) => sample !== undefined);
  const verdicts = around.map((sample) => (sample.role === 'master'
    ? judgeMasterWrite(receipt, history, segments, sample, after)
    : judgeWindowWrite(receipt, history)));
  const place = around.map((sample) => `${sample.role} ${sample.replid.slice(0, 8)}@${sample.offset}`).join(' … ');
  const allowed = verdicts.find(({ kind }) => kind !== 'unexplained');
  if (allowed !== undefined) return allowed;
  const reason = verdicts.map((verdict) => verdict.reason).join('; or ') || 'the node was never asked';
  return { kind: 'unexplained', reason: `${reason} (the node then: ${place})` };
}

function judgeMasterWrite(
  receipt: Receipt, history: History, segments: readonly Segment[], { replid }: Sample, after: Sample | undefined,
): Verdict {
  const segment = segments.find((each) => each.replid === replid);
  const short = replid.slice(0, 8);
  if (segment === undefined) {
    const demotedMs = firstOther(history, receipt.host, replid, receipt.acknowledgedMs);
    const verdict = blame(receipt, history, receipt.acknowledgedMs, demotedMs, `history ${short} was given up`);
    return verdict.kind === 'unexplained' ? judgeHeir(receipt, history, segments, replid) ?? verdict : verdict;
  }
  const highest = after?.replid === replid ? after.offset : after?.replid2 === replid ? after.secondOffset - 1 : Infinity;
  if (isPartOf(segment, highest, receipt) || segment.leftMs === Infinity) {
    return { kind: 'unexplained', reason: `at offset ${highest} at most it is part of history ${short}, kept up to ${segment.upTo}` };
  }
  const demotedMs = Math.max(segment.leftMs, firstOther(history, receipt.host, replid, receipt.acknowledgedMs));
  const what = `not in the copy when ${segment.how}, which left history ${short} at offset ${segment.upTo}`;
  return blame({ ...receipt, host: segment.emptiedBy ?? receipt.host }, history, Math.min(receipt.sentMs, segment.leftMs), demotedMs, what);
}

/** Whether a write that was at `highest` at most must have been kept when the segment was left. */
function isPartOf({ upTo, emptiedBy, keptUntilMs }: Segment, highest: number, receipt: Receipt): boolean {
  if (emptiedBy !== null) return false;
  return highest === 0 && keptUntilMs !== undefined ? receipt.acknowledgedMs <= keptUntilMs : highest <= upTo;
}

/** A planned move may have carried the history on under other ids, before the last of them was given up; null when none came out of it. */
function judgeHeir(receipt: Receipt, history: History, segments: readonly Segment[], replid: string): Verdict | null {
  let heir: { readonly host: string; readonly sample: Sample } | null = null;
  for (let id = replid; ;) {
    const next = [...history.samples].flatMap(([host, all]) => {
      const sample = all.find((each) => each.role === 'master' && each.replid2 === id && each.askedMs >= receipt.acknowledgedMs);
      return sample === undefined ? [] : [{ host, sample }];
    }).sort((a, b) => a.sample.answeredMs - b.sample.answeredMs)[0];
    if (next === undefined) break;
    // What is part of the final history was not given up.
    if (segments.some((segment) => segment.replid === next.sample.replid)) return null;
    heir = next;
    id = next.sample.replid;
  }
  if (heir === null) return null;
  const { host, sample } = heir;
  const leftMs = firstOther(history, host, sample.replid, sample.answeredMs);
  return blame({ ...receipt, host }, history, sample.askedMs, leftMs, `history ${replid.slice(0, 8)} went on as ${sample.replid.slice(0, 8)}, which was given up`);
}

/** When the node was first seen with another history, after `atMs`. */
function firstOther({ samples }: History, host: string, replid: string, atMs: number): number {
  return samples.get(host)?.find((sample) => sample.askedMs >= atMs && sample.replid !== replid)?.answeredMs ?? Infinity;
}

/** The fault on the node that explains what happened to it between two times. */
function blame(receipt: Receipt, { disturbances }: History, fromMs: number, toMs: number, what: string): Verdict {
  const culprits = disturbances.filter(({ hosts, startMs, endMs }) =>
    hosts.includes(receipt.host) && startMs <= toMs && endMs >= Math.min(fromMs, receipt.sentMs) - AFTERMATH_MS);
  // The one that was on, else the next one, else the last one before.
  const isOn = ({ startMs, endMs }: Disturbance): boolean => startMs <= receipt.acknowledgedMs && endMs >= receipt.sentMs;
  const culprit = culprits.find(isOn) ?? culprits.find(({ startMs }) => startMs >= receipt.sentMs) ?? culprits.at(-1);
  if (culprit === undefined) return { kind: 'unexplained', reason: `${what}, and no fault hit ${receipt.host}` };
  const gap = culprit.startMs - receipt.acknowledgedMs;
  const when = gap >= 0 ? `${gap} ms before` : `${-gap} ms after the beginning of`;
  return { kind: culprit.kind, reason: `acknowledged by ${receipt.host} ${when}: ${culprit.title}; ${what}` };
}

function judgeWindowWrite(receipt: Receipt, { windows, disturbances }: History): Verdict {
  const window = windows.find(({ target, startMs, endMs }) =>
    target === receipt.host && startMs <= receipt.acknowledgedMs && endMs >= receipt.sentMs);
  if (window === undefined) return { kind: 'unexplained', reason: `acknowledged by ${receipt.host} as a replica, outside any silent window` };
  if (window.wasAborted) return { kind: 'aborted', reason: `written to ${receipt.host} in a silent window that the operator aborted` };
  const culprit = disturbances.find(({ hosts, startMs, endMs }) =>
    (hosts.includes(window.target) || hosts.includes(window.original)) && startMs <= window.endMs + COPY_MS && endMs >= window.startMs);
  if (culprit === undefined) return { kind: 'unexplained', reason: `written to ${receipt.host} in a silent window without a fault` };
  return { kind: culprit.kind, reason: `written to ${receipt.host} in a silent window that ended badly: ${culprit.title}` };
}
