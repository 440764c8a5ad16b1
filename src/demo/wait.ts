/**
 * Waiting for the world: poll until something holds, with a deadline and a way out.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError } from '../errors.js';

const POLL_MS = 20;

/** Resolves after `durationMs`; rejects with the signal's reason when it aborts first. */
export async function pause(durationMs: number, signal?: AbortSignal): Promise<void> {
  await sleep(durationMs, undefined, signal === undefined ? {} : { signal });
}

/**
 * Polls until `lacking` returns null. It returns what is still missing, in words, else.
 *
 * Rejects with AgentError LINK_FAILED after `limitMs`, naming what was missing last.
 */
export async function waitUntilNothing(lacking: () => Promise<string | null>, limitMs: number, signal?: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  for (let missing = await lacking(); missing !== null; missing = await lacking()) {
    if (performance.now() > deadlineMs) throw new AgentError('LINK_FAILED', `not within ${limitMs} ms: ${missing}`);
    await pause(POLL_MS, signal);
  }
}
