/**
 * Fitting an answer to its transport (RFC 2181 9): first Additional goes, without TC, since the asker can do without it; then
 * everything goes and TC sends the asker to TCP. A record set is never sent in part.
 */

export type Fit = 'whole' | 'withoutAdditional' | 'truncated';

/** Decides by sizes in bytes: `base` = header, question and OPT; `limit` = the most that may be sent. */
export function fitAnswer(limit: number, base: number, required: number, additional: number): Fit {
  if (base + required + additional <= limit) return 'whole';
  return base + required <= limit ? 'withoutAdditional' : 'truncated';
}
