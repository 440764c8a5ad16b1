/**
 * Waiting that can be cut short.
 */

/** Resolves after `durationMs`, or at once when `signal` aborts; look at the signal afterwards. */
export function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}
