/**
 * The replication id that a node reported: all nodes of one history share it, and a node that is promoted begins a new one.
 */

/** As INFO has it (Redis 4 and later); null where it is not known. */
export function replicationIdOf(infoText: string | null): string | null {
  return /^master_replid:([0-9a-f]{40})/m.exec(infoText ?? '')?.[1] ?? null;
}

/** Whether both are known, and differ. */
export function isOtherHistory(before: string | null, now: string | null): boolean {
  return before !== null && now !== null && before !== now;
}
