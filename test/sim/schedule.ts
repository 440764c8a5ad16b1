/**
 * What was done to a world, as a list that can be cut: faults with their ends, and the words of operators.
 *
 * A run that draws its trouble records it here; a run that is given a list does exactly that and draws nothing. Both carry it out
 * before anything else of the same millisecond (see the lanes of clock.ts), so the recorded list repeats the drawn run to the letter.
 */

/** `atMs` from the start of the world; `forMs`: until it ends. Machines go by their names. */
export type Deed = { readonly atMs: number } & (
  | { readonly kind: 'crashSentinel'; readonly who: string; readonly power: boolean; readonly keepDisk: boolean; readonly forMs: number }
  | { readonly kind: 'crashNode'; readonly who: string; readonly power: boolean; readonly keepData: boolean; readonly forMs: number }
  | { readonly kind: 'stop'; readonly who: string; readonly forMs: number }
  | { readonly kind: 'script'; readonly who: string; readonly forMs: number }
  | { readonly kind: 'jumpClock'; readonly who: string; readonly byMs: number }
  | { readonly kind: 'repoint'; readonly who: string; readonly to: string | null }
  | { readonly kind: 'isolate'; readonly who: string; readonly outward: boolean; readonly inward: boolean; readonly forMs: number }
  | { readonly kind: 'split'; readonly names: readonly string[]; readonly forMs: number }
  | { readonly kind: 'cut'; readonly who: string; readonly to: string; readonly forMs: number }
  | { readonly kind: 'drop'; readonly share: number; readonly seed: number }
  | { readonly kind: 'slow'; readonly who: string; readonly byMs: number; readonly forMs: number }
  | { readonly kind: 'disk'; readonly who: string; readonly slowMs: number | null; readonly forMs: number }
  | { readonly kind: 'say'; readonly who: string; readonly words: readonly string[]; readonly prepares: string | null }
);

export type Schedule = readonly Deed[];

const rest = (deed: Deed): string => {
  return Object.entries(deed).flatMap(([name, value]) => (['atMs', 'kind', 'who'].includes(name) ? [] : [`${name}=${JSON.stringify(value)}`])).join(' ');
};

/** A deed as a line for people. */
export function deedText(deed: Deed): string {
  const who = 'who' in deed ? ` ${deed.who}` : '';
  const what = deed.kind === 'say' ? `SENTINEL ${deed.words.join(' ')}` : rest(deed);
  return `${(deed.atMs / 1000).toFixed(3).padStart(9)} ${deed.kind}${who} ${what}`.trimEnd();
}

/** One deed a line, so that a file of them can be cut by hand. */
export function scheduleText(schedule: Schedule): string {
  return `[\n${schedule.map((deed) => `  ${JSON.stringify(deed)}`).join(',\n')}\n]\n`;
}

/** Reads what {@link scheduleText} wrote; throws where it is none. */
export function parseSchedule(text: string): Schedule {
  const read: unknown = JSON.parse(text);
  const isDeed = (each: unknown): each is Deed => typeof each === 'object' && each !== null && 'kind' in each && 'atMs' in each;
  if (!Array.isArray(read) || !read.every(isDeed)) throw new Error('a schedule is a JSON array of deeds, each with kind and atMs');
  return read;
}
