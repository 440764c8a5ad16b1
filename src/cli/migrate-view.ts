/**
 * How a move looks: a line per step, a bar under way where the output is a terminal; one JSON object per line for programs.
 */
import type { Finding } from '../migrate/findings.js';
import type { MoveEvent } from '../migrate/mover.js';
import { bar, findingLines, reportLines, stepLine } from '../migrate/texts.js';

interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const REDRAW_MS = 100;

export class MoveView {
  readonly #output: Output;
  readonly #json: boolean;
  #drawnMs = 0;
  #isDrawn = false;

  constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** Text for people; programs don't get it. */
  lines(lines: readonly string[]): void {
    if (this.#json) return;
    this.#clear();
    for (const line of lines) this.#output.write(`${line}\n`);
  }

  findings(findings: readonly Finding[]): void {
    if (this.#json) for (const finding of findings) this.#print({ finding: finding.level, about: finding.about, text: finding.text });
    else this.lines(findingLines(findings));
  }

  event(event: MoveEvent): void {
    if (this.#json) return this.#jsonEvent(event);
    switch (event.kind) {
      case 'begin': return this.#draw(`      ${event.step} …`, true);
      case 'progress': return this.#draw(`      ${event.step.padEnd(12)} ${bar(event.part)}${event.text}`, false);
      case 'end': {
        this.lines([stepLine(event.step, event.ms, event.facts)]);
        return event.step === 'report' ? this.lines(reportLines(event.facts)) : undefined;
      }
      case 'failed': return this.lines([`FAIL  ${event.step}: ${event.text}`]);
      case 'back': return this.lines([`back  ${event.reason}`]);
      case 'closed': return undefined;
    }
  }

  /** The closing sentence. */
  last(ok: boolean, text: string): void {
    if (this.#json) this.#print({ ok, text });
    else this.lines([text]);
  }

  #jsonEvent(event: MoveEvent): void {
    switch (event.kind) {
      case 'begin':
      case 'progress': return;
      case 'end': return this.#print({ step: event.step, state: 'done', ms: event.ms, ...event.facts });
      case 'failed': return this.#print({ step: event.step, state: 'failed', text: event.text });
      case 'back': return this.#print({ back: event.reason });
      case 'closed': return this.#print({ outcome: event.outcome, text: event.text, leftovers: event.leftovers });
    }
  }

  #print(value: object): void {
    this.#output.write(`${JSON.stringify(value)}\n`);
  }

  /** A line that the next one takes the place of; on a terminal only. */
  #draw(text: string, atOnce: boolean): void {
    if (this.#output.isTTY !== true) return;
    const nowMs = performance.now();
    if (!atOnce && nowMs - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = nowMs;
    this.#isDrawn = true;
    this.#output.write(`\r\x1b[K${text.slice(0, (this.#output.columns ?? 100) - 1)}`);
  }

  #clear(): void {
    if (this.#isDrawn) this.#output.write('\r\x1b[K');
    this.#isDrawn = false;
  }
}
