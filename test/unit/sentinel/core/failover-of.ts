/** A failover record for tests: an ordinary automatic one, with what the test cares about on top. */
import type { Failover } from '../../../../src/sentinel/core/state.js';
import { millis } from '../../../../src/time.js';

export function failoverOf(fields: Partial<Failover>): Failover {
  return {
    ...{ state: 'wait_start', stateSinceMs: millis(0), epoch: 1, forced: false, promoted: null, lastPollMs: millis(0), orderedOn: null, originalTold: false },
    ...{ purpose: 'failover', target: null, client: null, coordinated: false },
    ...{ lastPauseMs: millis(0), lastPauseLengthMs: 0, pauseTaken: false, pauseRefused: null },
    ...{ heldUntilMs: millis(0), heldOffset: null },
    ...fields,
  };
}
