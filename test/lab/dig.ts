/**
 * DNS as an operator would look at it: `dig`, run on a client's host.
 */
import { execFile } from 'node:child_process';
import type { Network } from './network.js';
import { DNS_PORT, NAME } from './site.js';

/** `198.18.7.11`, several with blanks between them, `no answer`, or the status when there is no address (`SERVFAIL`). */
export function dig(network: Network, from: string, server: string): Promise<string> {
  const [command = '', ...before] = network.on(from);
  const args = [...before, 'dig', '+time=1', '+tries=1', `@${server}`, '-p', String(DNS_PORT), NAME, 'A'];
  return new Promise((resolve) => {
    execFile(command, args, { timeout: 5_000 }, (error, stdout) => resolve(error === null ? readDig(stdout) : 'no answer'));
  });
}

/** From what dig prints. */
export function readDig(text: string): string {
  const addresses = [...text.matchAll(/^[^;\s]\S*\s+\d+\s+IN\s+A\s+(\S+)$/gm)].map((match) => match[1] ?? '');
  if (addresses.length > 0) return addresses.join(' ');
  const status = /status: (\w+)/.exec(text)?.[1] ?? 'no answer';
  return status === 'NOERROR' ? 'no address' : status;
}
