/**
 * The live view: who is master, what each agent's DNS answers, writes per second, the last events; redrawn on a terminal, as
 * plain lines elsewhere (a line when something changes, and one now and then).
 */
import type { WriteStream } from 'node:tty';

const MOST_EVENTS = 10;
const PLAIN_EVERY_MS = 5000;

export interface LiveState {
  /** `redis2 at 127.0.0.2:17001, pid 4711`; null while agents disagree. */
  readonly master: string | null;
  /** The master's process, for the invitation to kill it. */
  readonly masterPid: number | null;
  readonly answers: readonly { readonly agent: string; readonly answer: string }[];
  readonly writesPerSecond: number;
  readonly acknowledged: number;
  readonly errors: number;
  readonly lost: number;
  readonly tryOut: readonly string[];
}

type Output = Pick<WriteStream, 'write'> & { readonly isTTY?: boolean; readonly columns?: number };

/** Shows one state after the other on one output. */
export class LiveView {
  readonly #out: Output;
  readonly #events: string[] = [];
  #drawnLines = 0;
  #lastPlain = '';
  #lastPlainMs = -Infinity;

  constructor(out: Output) {
    this.#out = out;
  }

  /** An event, with the time of day. On a terminal it appears with the next state. */
  note(text: string): void {
    const line = `${new Date().toISOString().slice(11, 23)} ${text}`;
    this.#events.push(line);
    if (this.#events.length > MOST_EVENTS) this.#events.shift();
    if (this.#out.isTTY !== true) this.#out.write(`${line}\n`);
  }

  show(state: LiveState): void {
    if (this.#out.isTTY === true) this.#redraw(state);
    else this.#print(state);
  }

  #redraw(state: LiveState): void {
    // A terminal that does not know its width says 0.
    const width = Math.max(20, (this.#out.columns || 80) - 1);
    const lines = [...screenOf(state), ...this.#events].map((line) => [...line].slice(0, width).join(''));
    const back = this.#drawnLines === 0 ? '' : `\x1b[${this.#drawnLines}A`;
    this.#out.write(`${back}\x1b[0J${lines.join('\n')}\n`);
    this.#drawnLines = lines.length;
  }

  #print(state: LiveState): void {
    const answers = state.answers.map(({ answer }) => answer).join(' ');
    const what = `master ${state.master ?? 'disputed'} · dns ${answers}`;
    const nowMs = performance.now();
    if (what === this.#lastPlain && nowMs - this.#lastPlainMs < PLAIN_EVERY_MS) return;
    if (this.#lastPlain === '') this.#out.write(`${invitation(state).join('\n')}\n`);
    this.#out.write(`${what} · ${countsOf(state)}\n`);
    this.#lastPlain = what;
    this.#lastPlainMs = nowMs;
  }
}

const countsOf = ({ writesPerSecond, acknowledged, errors, lost }: LiveState): string =>
  `${Math.round(writesPerSecond)} writes/s · acknowledged ${acknowledged} · lost ${lost} · errors ${errors}`;

function invitation({ masterPid, tryOut }: LiveState): string[] {
  return ['try, in another terminal:', ...(masterPid === null ? [] : [`kill -9 ${masterPid}   # the master`]), ...tryOut]
    .map((line, index) => (index === 0 ? line : `  ${line}`));
}

function screenOf(state: LiveState): string[] {
  return [
    '',
    `master    ${state.master ?? 'disputed'}`,
    ...state.answers.map(({ agent, answer }) => `${agent.padEnd(10)}dig says ${answer}`),
    `client    ${countsOf(state)}`,
    '',
    ...invitation(state),
    'Ctrl-C ends everything.',
    '',
  ];
}
