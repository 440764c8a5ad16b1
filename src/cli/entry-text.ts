/**
 * A journal entry or a sentinel event as one line for people: `history` and `watch`.
 */
import type { FeedEntry } from '../admin/event-feed.js';

export function entryText(entry: FeedEntry): string {
  switch (entry.kind) {
    case 'event':
      return `${entry.at}  event   ${entry.name} ${entry.payload}`;
    case 'route': {
      const doubts = [...(entry.confirmed ? [] : ['unconfirmed']), ...(entry.trusted ? [] : ['isolated'])].map((word) => `  ${word}`);
      const move = entry.from === null ? (entry.to ?? 'unknown') : `${entry.from} -> ${entry.to ?? 'unknown'}`;
      const why = entry.reason === '' ? '' : `  ${entry.reason}`;
      return `${entry.at}  route   ${entry.master}  ${move}  epoch ${entry.epoch}  ${entry.phase}  by ${entry.actor}${why}${doubts.join('')}`;
    }
    case 'output': {
      const result = entry.error === null ? entry.detail : `${entry.error.code} ${entry.error.message}`;
      const tries = entry.attempts > 1 ? `  ${entry.attempts} attempts` : '';
      const target = `-> ${entry.to ?? 'unknown'}`;
      return `${entry.at}  output  ${entry.master}  ${entry.output} ${entry.outcome} ${target}  epoch ${entry.epoch}  ${entry.latencyMs} ms${tries}  ${result}`.trimEnd();
    }
  }
}

/** Whether an entry is about the master; a sentinel event names it as a word. */
export function isAbout(entry: FeedEntry, master: string | null): boolean {
  if (master === null) return true;
  return entry.kind === 'event' ? entry.payload.split(' ').includes(master) : entry.master === master;
}
