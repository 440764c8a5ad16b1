/**
 * The `# Sentinel` section of INFO (6.12); the other sections are the server's.
 *
 * Shows the held address of a master, also between promotion and `+switch-master`. Mirrors sentinelInfoCommand. Divergence D39:
 * the counters of planned moves at its end are ours.
 */
import type { SentinelState } from '../state.js';
import { announcedHost } from '../state.js';

/** Lines end in CRLF, the last one too. The age of a TILT is as of the last input, at most half a second ago. */
export function sentinelInfoSection(state: Readonly<SentinelState>, runningScripts: number, queuedScripts: number): string {
  const { tiltSinceMs, previousMs, simulate, settings, silentCounters } = state;
  const masters = [...state.masters.values()].map((master, index) => {
    const status = master.odownSinceMs !== null ? 'odown' : master.sdownSinceMs !== null ? 'sdown' : 'ok';
    const address = `${announcedHost(settings, master.address)}:${master.address.port}`;
    const counts = `slaves=${master.replicas.size},sentinels=${master.peers.size + 1}`;
    return `master${index}:name=${master.name},status=${status},address=${address},${counts}`;
  });
  const lines = [
    '# Sentinel',
    `sentinel_masters:${masters.length}`,
    `sentinel_tilt:${tiltSinceMs === null ? 0 : 1}`,
    `sentinel_tilt_since_seconds:${tiltSinceMs === null ? -1 : Math.trunc((previousMs - tiltSinceMs) / 1000)}`,
    `sentinel_running_scripts:${runningScripts}`,
    `sentinel_scripts_queue_length:${queuedScripts}`,
    `sentinel_simulate_failure_flags:${(simulate.crashAfterElection ? 1 : 0) + (simulate.crashAfterPromotion ? 2 : 0)}`,
    ...masters,
    `total_silent_failover_prepare:${silentCounters.prepare}`,
    `total_silent_failover_done:${silentCounters.done}`,
    `total_silent_failover_excp_abort:${silentCounters.abort}`,
  ];
  return lines.map((line) => `${line}\r\n`).join('');
}
