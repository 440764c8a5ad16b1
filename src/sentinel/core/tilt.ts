/**
 * TILT: the clock jumped or the process slept, so ages of last answers mean nothing for a while (1.4).
 *
 * Monitoring, voting and learning go on; verdicts and actions pause. Mirrors sentinelCheckTiltCondition.
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { NEVER } from './monitor.js';
import { forgetFuture } from './rewind.js';
import type { SentinelState } from './state.js';
import type { Turn } from './turn.js';
import { announceText, touch } from './turn.js';

/** Why a planned move is refused meanwhile: its election would stand still, and whoever asked for it would wait for half a minute. */
export const IN_TILT = 'NOQUORUM this sentinel is in TILT, ask another one';

/** At the start of every turn; `previousMs` is always the turn before. */
export function checkTilt(turn: Turn): void {
  const { state, now } = turn;
  const elapsedMs = now - state.previousMs;
  state.previousMs = now;
  if (elapsedMs < 0 || elapsedMs > state.tunables.tiltTriggerMs) {
    state.tiltSinceMs = now;
    if (elapsedMs < 0) forgetFuture(state, now);
    announceText(turn, 'warning', '+tilt', '#tilt mode entered', null);
    touchAll(turn);
    return;
  }
  // Divergence D48: TILT also ends with no master monitored; stock then stays in it for ever.
  if (now < tiltEndsMs(state)) return;
  state.tiltSinceMs = null;
  announceText(turn, 'warning', '-tilt', '#tilt mode exited', null);
  touchAll(turn);
}

export function tiltEndsMs(state: SentinelState): Millis {
  return state.tiltSinceMs === null ? NEVER : addMs(state.tiltSinceMs, state.tunables.tiltPeriodMs);
}

function touchAll(turn: Turn): void {
  for (const name of turn.state.masters.keys()) touch(turn, name);
}
