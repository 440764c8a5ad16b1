/**
 * Peers that name another master than we do under the same configuration: one of us has a wrong address, not an old one.
 *
 * No election ends that (a host name that means loopback on the master's own machine is the usual cause), so it is said once per
 * peer and address, until both agree again.
 */
import { formatAddress } from '../../wire/address.js';
import type { Hello } from '../../wire/hello.js';
import type { Master, Peer } from '../state.js';
import { announcedHost, currentMasterAddress } from '../state.js';
import type { Turn } from '../turn.js';
import { log } from '../turn.js';

/** After a hello with our own configEpoch. `agrees`: it names the master that we name. */
export function noteView(turn: Turn, master: Master, peer: Peer, hello: Hello, agrees: boolean): void {
  const { differing } = master.caution;
  if (agrees) {
    differing.delete(peer.runId);
    return;
  }
  const theirs = formatAddress(hello.master);
  if (differing.get(peer.runId) === theirs) return;
  differing.set(peer.runId, theirs);
  const current = currentMasterAddress(master);
  const ours = formatAddress({ host: announcedHost(turn.state.settings, current) || current.host, port: current.port });
  const at = formatAddress({ host: peer.address.host, port: peer.address.port });
  const views = `Sentinel ${at} names ${theirs} as the master ${master.name}, we ${ours}`;
  log(turn, 'warning', `${views}, both in configuration ${master.configEpoch}: one address is wrong`);
}
