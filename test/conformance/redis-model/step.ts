/** A step of a script, taken apart once for both sides. */
export type Step =
  | { readonly kind: 'ask'; readonly node: number; readonly argv: readonly string[]; readonly anyNumber: boolean }
  | { readonly kind: 'all'; readonly node: number; readonly commands: readonly (readonly string[])[] }
  | { readonly kind: 'write'; readonly node: number; readonly values: readonly number[]; readonly expiresMs: number | null }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: Deed; readonly node: number };

const DEEDS = ['listen', 'idle', 'script', 'stop', 'go', 'kill', 'start', 'start-empty', 'slow'] as const;
export type Deed = (typeof DEEDS)[number];

/** One of the two sides. */
export interface Servers {
  /** What comes back within `patienceMs`; else `held`. */
  carryOut(step: Step, patienceMs: number): Promise<string>;
  /** Lines that must be the same on both sides in the end. */
  view(): Promise<string[]>;
  close(): Promise<void>;
}

/** Reads the steps of a script; written values are numbered through. */
export function readSteps(lines: readonly string[]): { readonly line: string; readonly settles: boolean; readonly step: Step }[] {
  let value = 0;
  return lines.map((line) => {
    const [node = '', verb = '', ...rest] = line.replace(/^~/, '').split(' ');
    const number = Number(node);
    const next = (count: number): number[] => Array.from({ length: count }, () => ++value);
    const read = (): Step => {
      if (verb === 'ask') return { kind: 'ask', node: number, argv: rest, anyNumber: rest.join(' ') === 'CLIENT KILL TYPE normal' };
      if (verb === 'all') return { kind: 'all', node: number, commands: rest.join(' ').split(' / ').map((each) => each.split(' ')) };
      if (verb === 'write') return { kind: 'write', node: number, values: next(Number(rest[0])), expiresMs: null };
      if (verb === 'expiring') return { kind: 'write', node: number, values: next(1), expiresMs: Number(rest[0]) };
      if (verb === 'wait') return { kind: 'wait', ms: Number(rest[0]) };
      const deed = DEEDS.find((each) => each === verb);
      if (deed === undefined) throw new Error(`no verb ${verb} in step ${line}`);
      return { kind: deed, node: number };
    };
    return { line, settles: !line.startsWith('~'), step: read() };
  });
}

/** Longest wait for a reply before it counts as held. */
export const HELD_AFTER_MS = 400;
/** A reply that must come may take its time on a busy machine. */
export const PATIENCE_MS = 5_000;
