/**
 * One client of the lab, a process on a host of its own: it finds the master by DNS through the agents and writes to it.
 *
 *   tsx ledger-client.ts KEY PER_SECOND NAME PORT AGENT_DNS… > receipts
 *
 * Each line of its output is a run of acknowledged numbers, as JSON. TERM lets it finish what is under way.
 */
import { writeSync } from 'node:fs';
import { DnsProbe } from '../../src/demo/dns-probe.js';
import { Ledger } from '../../src/demo/ledger.js';
import type { Receipt } from './lineage.js';

const [key = '', perSecond = '', name = '', port = '', ...servers] = process.argv.slice(2);
const STDOUT = 1;
const probes = servers.map((host) => new DnsProbe({ host, port: Number(port) }, name));

const ledger = new Ledger(
  async () => {
    // As a resolver does: the next server when one is silent or refuses.
    for (const probe of probes) {
      const host = await probe.askHost();
      if (host !== null) return { host, port: 6379 };
    }
    return null;
  },
  Number(perSecond),
  {
    key,
    onWritten({ first, last, master, sentMs, acknowledgedMs }) {
      const receipt: Receipt = { key, first, last, host: master.host, sentMs, acknowledgedMs };
      writeSync(STDOUT, `${JSON.stringify(receipt)}\n`);
    },
  },
);

ledger.start();
process.once('SIGTERM', () => {
  void ledger.stop().then(() => {
    for (const probe of probes) probe.close();
  });
});
