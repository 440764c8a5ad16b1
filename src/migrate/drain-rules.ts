/**
 * Whom to cut next at the old master, by its CLIENT LIST. Pure.
 *
 * A connection does not move by itself: it has to be closed, best between two commands, when its client notices before it asks
 * again. So idle ones go first, then those in use but with nothing under way, then subscribers and blocked ones, and last, after
 * some patience, those in the middle of a transaction or a query. In small batches, so that the target is not stormed.
 * Who comes back after the flip does not follow (a fixed address, an old resolver): cut once a second, and counted.
 */

export interface ClientLine {
  readonly id: number;
  readonly host: string;
  readonly name: string;
  readonly user: string;
  readonly kind: ClientKind;
}

export type ClientKind = 'idle' | 'active' | 'pubsub' | 'blocked' | 'busy';

/** Links of sentinels, ours and stock, by the name they give themselves. */
const SENTINEL_LINK = /^sentinel-[0-9a-f]{8}-(cmd|pubsub)$/;
const CUT_ORDER: readonly ClientKind[] = ['idle', 'active', 'pubsub', 'blocked'];
const SMALLEST_BATCH = 8;
/** A batch is at most this part of all. */
const ROUNDS = 40;
/** Who never stands between two commands is cut after this. */
const BUSY_PATIENCE_MS = 2_000;
const NEWCOMER_PAUSE_MS = 1_000;
/** Newcomers alone were cut this often, and came back each time: they are pinned. */
const PINNED_AFTER_CUTS = 4;

/** Clients that have to go: not replicas, masters, sentinels, nor connections named `own`. */
export function parseClients(list: string, own: string): ClientLine[] {
  return list.split(/\r?\n/).flatMap((line) => {
    const fields = new Map(line.split(' ').map((word) => {
      const equals = word.indexOf('=');
      return [word.slice(0, equals), word.slice(equals + 1)] as const;
    }));
    const flags = fields.get('flags') ?? '';
    const name = fields.get('name') ?? '';
    const id = Number(fields.get('id'));
    if (!Number.isInteger(id) || /[SM]/.test(flags) || SENTINEL_LINK.test(name) || name === own) return [];
    return [{ id, host: (fields.get('addr') ?? '').replace(/:\d+$/, ''), name, user: fields.get('user') ?? '', kind: kindOf(fields, flags) }];
  });
}

function kindOf(fields: ReadonlyMap<string, string>, flags: string): ClientKind {
  const number = (name: string): number => Number(fields.get(name) ?? 0);
  if (flags.includes('P') || number('sub') + number('psub') + number('ssub') > 0) return 'pubsub';
  if (flags.includes('b')) return 'blocked';
  if (flags.includes('x') || number('multi') >= 0 || number('qbuf') > 0 || number('obl') + number('oll') > 0) return 'busy';
  return number('idle') >= 1 ? 'idle' : 'active';
}

export interface DrainMemory {
  /** Connections with a higher id came after the flip. */
  readonly lastOldId: number;
  readonly cut: number;
  readonly newcomersCut: number;
  readonly newcomerCuts: number;
  readonly lastNewcomerCutMs: number;
  /** Since when only busy ones are left; null = others are. */
  readonly onlyBusySinceMs: number | null;
}

export function beginDrain(clients: readonly ClientLine[]): DrainMemory {
  const lastOldId = Math.max(0, ...clients.map(({ id }) => id));
  return { lastOldId, cut: 0, newcomersCut: 0, newcomerCuts: 0, lastNewcomerCutMs: -Infinity, onlyBusySinceMs: null };
}

export interface DrainRound {
  readonly cut: readonly number[];
  readonly memory: DrainMemory;
  readonly verdict: 'going' | 'empty' | 'pinned';
}

/** One look; `nowMs` of any clock that does not jump. `hurry`: their writes are held anyway, all at once. */
export function drainRound(clients: readonly ClientLine[], before: DrainMemory, nowMs: number, hurry = false): DrainRound {
  if (clients.length === 0) return { cut: [], memory: before, verdict: 'empty' };
  const old = clients.filter(({ id }) => id <= before.lastOldId);
  if (old.length === 0) return newcomerRound(clients, before, nowMs);
  const rest = { ...before, onlyBusySinceMs: null };
  const size = hurry ? old.length : Math.max(SMALLEST_BATCH, Math.ceil(clients.length / ROUNDS));
  const kind = CUT_ORDER.find((each) => old.some((client) => client.kind === each));
  if (kind !== undefined) {
    const cut = old.filter((client) => hurry || client.kind === kind).slice(0, size).map(({ id }) => id);
    return { cut, memory: { ...rest, cut: rest.cut + cut.length }, verdict: 'going' };
  }
  const onlyBusySinceMs = before.onlyBusySinceMs ?? nowMs;
  if (!hurry && nowMs - onlyBusySinceMs < BUSY_PATIENCE_MS) return { cut: [], memory: { ...before, onlyBusySinceMs }, verdict: 'going' };
  const cut = old.slice(0, size).map(({ id }) => id);
  return { cut, memory: { ...before, onlyBusySinceMs, cut: before.cut + cut.length }, verdict: 'going' };
}

function newcomerRound(clients: readonly ClientLine[], before: DrainMemory, nowMs: number): DrainRound {
  if (nowMs - before.lastNewcomerCutMs < NEWCOMER_PAUSE_MS) return { cut: [], memory: before, verdict: 'going' };
  if (before.newcomerCuts >= PINNED_AFTER_CUTS) return { cut: [], memory: before, verdict: 'pinned' };
  const cut = clients.map(({ id }) => id);
  const counts = { cut: before.cut + cut.length, newcomersCut: before.newcomersCut + cut.length, newcomerCuts: before.newcomerCuts + 1 };
  return { cut, memory: { ...before, ...counts, lastNewcomerCutMs: nowMs }, verdict: 'going' };
}

/** Who is left, for people: `10.0.0.9 user=app name=worker (3)`. */
export function describeClients(clients: readonly ClientLine[]): string {
  const groups = new Map<string, number>();
  for (const { host, name, user } of clients) {
    const text = [host, ...(user === '' || user === 'default' ? [] : [`user=${user}`]), ...(name === '' ? [] : [`name=${name}`])].join(' ');
    groups.set(text, (groups.get(text) ?? 0) + 1);
  }
  return [...groups].map(([text, count]) => (count === 1 ? text : `${text} (${count})`)).join(', ');
}
