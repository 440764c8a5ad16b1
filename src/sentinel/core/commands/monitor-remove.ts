/**
 * SENTINEL MONITOR, REMOVE and RESET: masters come, go and forget.
 *
 * MONITOR's checks have a fixed order (6.5). A master that could not be saved stays monitored, as in stock. RESET isn't
 * written to disk, as in stock: peers that only the file knows come back at the next start.
 */
import { globMatch } from '../../wire/glob.js';
import { isIpAddress } from '../../wire/ip.js';
import { integer, OK } from '../../wire/resp-value.js';
import { createMaster } from '../instance.js';
import type { SentinelState } from '../state.js';
import { resetByCommand } from '../caution/last-known.js';
import { forgetDebts } from '../silent/debts.js';
import { removeMaster } from '../switch-master.js';
import type { Turn } from '../turn.js';
import { announce, persist } from '../turn.js';
import { MAX_INT32, strictInteger } from './integer.js';
import type { Outcome } from './outcome.js';
import { forMaster, NOT_SAVED, refuse, reply, savedOk } from './outcome.js';

export function monitor(turn: Turn, [name = '', host = '', portText = '', quorumText = '']: readonly string[]): Outcome {
  const { state } = turn;
  const quorum = strictInteger(quorumText, -Number.MAX_SAFE_INTEGER, MAX_INT32);
  if (quorum === null) return refuse('ERR Invalid quorum');
  const port = strictInteger(portText);
  if (port === null) return refuse('ERR Invalid port');
  if (quorum <= 0) return refuse('ERR Quorum must be 1 or greater.');
  const ip = knownIp(state, host);
  if (ip === null) return refuse('ERR Invalid IP address or hostname specified');
  if (port < 0 || port > 65_535) return refuse('ERR Invalid port number.');
  if ((state.masters.get(name)?.silent ?? null) !== null) return refuse('ERR This master is in silent failover state, can not remove');
  if (state.masters.has(name)) return refuse('ERR Duplicate master name.');

  const master = createMaster(state, { name, address: { host, ip, port }, quorum }, turn.now);
  // Stock announces after it has written, whether that went well or not; hence no `persist` in the outcome.
  persist(turn);
  announce(turn, 'warning', '+monitor', master, `quorum ${quorum}`);
  return { value: OK, ifNotSaved: NOT_SAVED };
}

/** The runtime has looked a name up before the command came here; what is unknown now has no address. */
function knownIp(state: SentinelState, host: string): string | null {
  if (isIpAddress(host)) return host;
  return state.settings.resolveHostnames ? (state.hostIps.get(host.toLowerCase()) ?? null) : null;
}

export const remove = forMaster((turn, master) => {
  if (master.silent !== null) return refuse('ERR This master is in silent failover state, can not remove');
  forgetDebts(turn, master);
  announce(turn, 'warning', '-monitor', master);
  removeMaster(turn, master);
  return savedOk();
});

export function reset(turn: Turn, [pattern = '']: readonly string[]): Outcome {
  const found = [...turn.state.masters.values()].filter((master) => globMatch(pattern, master.name));
  const matching = found.filter((master) => master.silent === null);
  if (found.length > 0 && matching.length === 0) return refuse('ERR This master is in silent failover state, can not reset');
  for (const master of matching) {
    forgetDebts(turn, master);
    resetByCommand(turn, master);
    announce(turn, 'warning', '+reset-master', master);
  }
  return reply(integer(matching.length));
}
