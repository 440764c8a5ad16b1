/**
 * `pointsman migrate`: a planned move of one master as one verb, with its plan, its journal, and the ways to go on or back.
 */
import { createInterface } from 'node:readline/promises';
import { AgentError, EXIT } from '../errors.js';
import { defaultJournalPath, claimJournal, MoveJournal, readJournal } from '../migrate/journal.js';
import { Group } from '../migrate/group.js';
import { Links } from '../migrate/links.js';
import type { LinkSettings } from '../migrate/links.js';
import { isOpen, reopen } from '../migrate/move-state.js';
import type { MoveState } from '../migrate/move-state.js';
import { Mover } from '../migrate/mover.js';
import type { MoveEvent } from '../migrate/mover.js';
import type { Step } from '../migrate/plan.js';
import { preflight } from '../migrate/steps/preflight.js';
import { findingLines, planLines } from '../migrate/texts.js';
import { abortWithoutJournal } from '../migrate/without-journal.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { MigrateOptions, Settings } from './migrate-options.js';
import { contactsOf, readSettings } from './migrate-options.js';
import { MoveView } from './migrate-view.js';

export type { MigrateOptions };

/** A test's way to die behind a step's line in the journal, before its work (`begin:drain`), or at its first progress (`during:drain`). */
const CRASH_VARIABLE = 'POINTSMAN_MIGRATE_CRASH';

/**
 * Resolves to the exit status: 0 the move is through (or, for `--abort`, taken back; for `--status`, nothing is open), 1 it was
 * turned back, left something over, or is open. Rejects with FatalError for wrong options (64), AgentError for what stopped it.
 */
export async function migrate(master: string | undefined, options: MigrateOptions): Promise<number> {
  const settings = readSettings(master, options);
  const path = settings.journal ?? defaultJournalPath(settings.master);
  const view = new MoveView(process.stdout, settings.json);
  if (settings.action === 'status') return showStatus(path, settings, view);
  const release = claimJournal(path);
  try {
    if (settings.action === 'move') return await begin(path, settings, view);
    return await goOn(path, settings, view);
  } finally {
    release();
  }
}

async function begin(path: string, settings: Settings, view: MoveView): Promise<number> {
  const open = readJournal(path);
  if (open !== null && isOpen(open) && !settings.dryRun) {
    throw new AgentError('MOVE_FAILED', `a move of ${open.plan.master} to ${formatAddress(open.plan.target)} is unfinished (${path}): --resume or --abort it first`);
  }
  const { contacts, links } = contactsOf(settings);
  const asking = new Links(links);
  const startMs = performance.now();
  const found = await preflight(asking, new Group(asking, settings.master), { ...settings, contacts }).finally(() => asking.close());
  view.lines(planLines(found.plan));
  view.findings(found.findings);
  const stops = found.findings.filter(({ level }) => level === 'stop').length;
  if (stops > 0) {
    view.last(false, `nothing was changed: ${stops === 1 ? 'one finding stands' : `${stops} findings stand`} in the way`);
    return EXIT.failed;
  }
  if (settings.dryRun) {
    view.last(true, 'a dry run: nothing was changed');
    return EXIT.ok;
  }
  if (!settings.yes && !(await isAgreed())) {
    view.last(false, 'nothing was changed: not confirmed');
    return EXIT.failed;
  }
  const journal = MoveJournal.begin(path, { kind: 'plan', version: 1, at: Date.now(), plan: found.plan });
  const ms = Math.round(performance.now() - startMs);
  view.event({ kind: 'end', step: 'preflight', ms, facts: {} });
  journal.note({ kind: 'end', at: Date.now(), step: 'preflight', ms, facts: {} });
  return drive(journal, links, settings, view);
}

async function goOn(path: string, settings: Settings, view: MoveView): Promise<number> {
  const known = readJournal(path);
  if (known === null || known.plan.master !== settings.master) {
    if (settings.action === 'abort') return abortBlindly(settings, view);
    throw new AgentError('MOVE_FAILED', `there is no move to resume in ${path}; if its journal is lost: pointsman migrate ${settings.master} --abort`);
  }
  if (!isOpen(known)) {
    view.last(true, `the move has ended: ${known.closed?.text ?? ''}`);
    return EXIT.ok;
  }
  const journal = MoveJournal.open(path);
  journal.replace(reopen(journal.move));
  if (settings.action === 'abort') journal.note({ kind: 'back', at: Date.now(), reason: 'aborted by the operator' });
  view.lines([`going on with the move of ${known.plan.master} to ${formatAddress(known.plan.target)}, begun steps: ${[...known.begun].join(', ') || 'none'}`]);
  const { contacts, links } = contactsOf(settings, known.plan.sentinels);
  // Sentinels that came since, or whose address only the operator knows.
  journal.replace({ ...journal.move, plan: { ...journal.move.plan, sentinels: distinct([...known.plan.sentinels, ...contacts]) } });
  return drive(journal, links, settings, view);
}

function distinct(addresses: readonly Address[]): Address[] {
  return [...new Map(addresses.map((address) => [formatAddress(address), address] as const)).values()];
}

/** Runs a journaled move to its end, or until a second signal. */
async function drive(journal: MoveJournal, links: LinkSettings, settings: Settings, view: MoveView): Promise<number> {
  const stop = new AbortController();
  const mover = new Mover({
    journal, links, stop: stop.signal,
    onEvent: (event) => {
      view.event(event);
      crashIfWanted(event);
    },
    choose: (reason) => choose(reason, settings),
  });
  let give: (fault: Error) => void = () => undefined;
  const second = new Promise<never>((_, reject) => (give = reject));
  const interrupt = (): void => {
    if (stop.signal.aborted) return give(new AgentError('MOVE_FAILED', `left as it is (${whereIs(journal.move)}): go on by --resume, or back by --abort`));
    view.lines(['stopping: what can be taken back is taken back; once more to leave everything as it is']);
    stop.abort();
  };
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    const { outcome, text, leftovers } = await Promise.race([mover.run(), second]);
    for (const left of leftovers) view.lines([`left over: ${left}`]);
    view.last(outcome === 'moved' && leftovers.length === 0, text);
    const wanted = settings.action === 'abort' ? 'rolled-back' : 'moved';
    return outcome === wanted && leftovers.length === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
    journal.close();
  }
}

function crashIfWanted(event: MoveEvent): void {
  const wanted = process.env[CRASH_VARIABLE];
  if (wanted === undefined || event.kind === 'closed' || event.kind === 'back') return;
  const prefix = { begin: 'begin:', progress: 'during:', failed: 'failed:', end: '' }[event.kind];
  if (`${prefix}${event.step}` === wanted) process.kill(process.pid, 'SIGKILL');
}

async function isAgreed(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new AgentError('MOVE_FAILED', 'not a terminal, nobody to ask: give --yes');
  return /^y(es)?$/i.test(await question('go? [y/N] '));
}

async function choose(reason: string, { yes, onFailure }: Settings): Promise<'abort' | 'done'> {
  if (yes || !process.stdin.isTTY) return onFailure;
  process.stdout.write(`\n${reason}\nabort sends clients back to the old master: what they wrote to the target in the window is lost.\n`);
  return /^d(one)?$/i.test(await question('abort, or done all the same? [abort/done] ')) ? 'done' : 'abort';
}

async function question(text: string): Promise<string> {
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  // A terminal that asks keeps Ctrl-C for itself.
  asking.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return (await asking.question(text)).trim();
  } finally {
    asking.close();
  }
}

async function abortBlindly(settings: Settings, view: MoveView): Promise<number> {
  const { contacts, links } = contactsOf(settings);
  const { did, notRestored } = await abortWithoutJournal(links, settings.master, contacts);
  view.lines(['there is no journal: what the sentinels know is taken back, the rest is named', ...did, ...notRestored.map((line) => `not restored: ${line}`)]);
  view.last(true, did.length === 0 ? 'nothing was under way' : 'taken back');
  return EXIT.ok;
}

function whereIs(move: MoveState): string {
  const last = [...move.begun].at(-1);
  const where = last === undefined ? 'nothing begun' : `${last}${move.finished.has(last as Step) ? ' finished' : ' under way'}`;
  return move.back === null ? where : `${where}, on the way back: ${move.back}`;
}

function showStatus(path: string, settings: Settings, view: MoveView): number {
  const move = readJournal(path);
  if (move === null) {
    view.last(true, `no move of ${settings.master} is known (${path})`);
    return EXIT.ok;
  }
  view.lines(planLines(move.plan).slice(0, 1));
  for (const [step, { ms, facts }] of move.finished) view.event({ kind: 'end', step, ms, facts });
  if (move.closed !== null) {
    view.lines([...findingLines([]), ...move.closed.leftovers.map((left) => `left over: ${left}`)]);
    view.last(!isOpen(move), `ended: ${move.closed.text}`);
  } else view.last(false, `open: ${whereIs(move)}; --resume or --abort`);
  return isOpen(move) ? EXIT.failed : EXIT.ok;
}
