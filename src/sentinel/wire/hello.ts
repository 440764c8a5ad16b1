/**
 * The hello: what sentinels tell each other on `__sentinel__:hello`, one line of commas.
 *
 * Eight fields are stock (sentinelSendHello); while a silent failover is prepared three more follow, which stock ignores
 * together with the rest of the line. Addresses stand as two fields, IPv6 without brackets.
 */
import type { Address } from './address.js';
import { atoi, strtoull } from './c-numbers.js';

/** The target that clients of the master are being moved to, and the epoch that ends the move. */
export interface SilentHello {
  readonly doneEpoch: number;
  readonly target: Address;
}

/** One hello. Run id and names are as received: stock does not check them either. */
export interface Hello {
  /** Where the speaker can be reached. */
  readonly sentinel: Address;
  readonly runId: string;
  readonly currentEpoch: number;
  readonly masterName: string;
  readonly master: Address;
  readonly configEpoch: number;
  /** null outside the silent state: then exactly the stock fields are sent. */
  readonly silent: SilentHello | null;
}

const STOCK_FIELDS = 8;
const SILENT_FIELDS = 11;

/**
 * Reads a hello; null for anything that is not 8 or 11 fields.
 *
 * Numbers are read as C does (garbage is 0). Divergence D21: an epoch above 2^53 - 1 or a port outside 0..65535 makes the
 * whole hello null. Stock adopts such an epoch and then can never raise it again (it wraps), and switches to an address
 * it cannot create; one forged or broken message would poison a group for good.
 */
export function parseHello(payload: string): Hello | null {
  const fields = payload.split(',', SILENT_FIELDS + 1);
  if (fields.length !== STOCK_FIELDS && fields.length !== SILENT_FIELDS) return null;
  const field = (index: number): string => fields[index] ?? '';
  const sentinel = readAddress(field(0), field(1));
  const currentEpoch = strtoull(field(3));
  const master = readAddress(field(5), field(6));
  const configEpoch = strtoull(field(7));
  if (sentinel === null || currentEpoch === null || master === null || configEpoch === null) return null;
  let silent: SilentHello | null = null;
  if (fields.length === SILENT_FIELDS) {
    const doneEpoch = strtoull(field(8));
    const target = readAddress(field(9), field(10));
    if (doneEpoch === null || target === null) return null;
    silent = { doneEpoch, target };
  }
  return { sentinel, runId: field(2), currentEpoch, masterName: field(4), master, configEpoch, silent };
}

/** The line that {@link parseHello} reads. */
export function formatHello(hello: Hello): string {
  const { sentinel, runId, currentEpoch, masterName, master, configEpoch, silent } = hello;
  const stock = [sentinel.host, sentinel.port, runId, currentEpoch, masterName, master.host, master.port, configEpoch];
  return (silent === null ? stock : [...stock, silent.doneEpoch, silent.target.host, silent.target.port]).join(',');
}

function readAddress(host: string, portText: string): Address | null {
  const port = atoi(portText);
  return port < 0 || port > 65535 ? null : { host, port };
}
