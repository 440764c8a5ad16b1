/**
 * Tells the neighbours where a VIP is now. Without it they keep the old holder's hardware address for half a minute.
 *
 * IPv4: both kinds of gratuitous ARP, since systems differ in which they obey; IPv6: an unsolicited neighbour advertisement. A frame may be
 * lost and a switch may be slow, so it is said at 0, 1, 3 and 10 s. The programs live a second each and nobody waits for them.
 */
import { writeFileSync } from 'node:fs';
import { messageOf } from '../../errors.js';
import type { Log } from '../../log.js';
import { starterThread } from '../../starter-thread.js';
import { isSix, vipText } from './settings.js';
import type { VipPrograms, VipSettings } from './settings.js';

const AT_MS = [0, 1_000, 3_000, 10_000];

export class Announcer {
  readonly #programs: VipPrograms;
  readonly #log: Log;
  readonly #timers = new Map<VipSettings, NodeJS.Timeout[]>();
  readonly #said = new Set<string>();

  constructor(programs: VipPrograms, log: Log) {
    this.#programs = programs;
    this.#log = log;
  }

  /** Begins the series anew. */
  announce(vip: VipSettings): void {
    this.cancel(vip);
    const [first, ...later] = AT_MS;
    if (first !== undefined) this.#once(vip);
    this.#timers.set(vip, later.map((atMs) => setTimeout(() => this.#once(vip), atMs).unref()));
  }

  /** The VIP is not here any more: a late announcement would take it away from its new holder. */
  cancel(vip: VipSettings): void {
    for (const timer of this.#timers.get(vip) ?? []) clearTimeout(timer);
    this.#timers.delete(vip);
  }

  close(): void {
    for (const vip of [...this.#timers.keys()]) this.cancel(vip);
  }

  /** IPv6 without ndptool: the kernel itself announces once, one to two seconds after the address was added without `nodad`. */
  kernelAnnounces(vip: VipSettings): boolean {
    if (!isSix(vip) || this.#programs.ndptool !== null) return false;
    try {
      writeFileSync(`/proc/sys/net/ipv6/conf/${vip.interface}/ndisc_notify`, '1');
      this.#warnOnce('ndptool', 'ndptool is not installed (Debian: libndp-tools): IPv6 VIPs are announced once, one to two seconds late');
    } catch (fault) {
      this.#warnOnce('ndisc_notify', `IPv6 VIPs can't be announced: no ndptool, and ndisc_notify of ${vip.interface}: ${messageOf(fault)}`);
    }
    return true;
  }

  #once(vip: VipSettings): void {
    const { arping, ndptool } = this.#programs;
    if (isSix(vip)) {
      if (ndptool !== null) this.#start(vip, [...ndptool, '-t', 'na', '-U', '-i', vip.interface, '-T', vip.ip, 'send']);
    } else if (arping === null) {
      this.#warnOnce('arping', 'arping is not installed (Debian: iputils-arping): clients on the VIP need half a minute to find its new holder');
    } else {
      for (const kind of ['-U', '-A']) this.#start(vip, [...arping, '-q', '-c', '1', kind, '-I', vip.interface, vip.ip]);
    }
  }

  #start(vip: VipSettings, [program = '', ...args]: readonly string[]): void {
    let words = '';
    starterThread.start({ path: program, args, output: 'errors', isUnattended: true }, {
      failed: ({ message }) => this.#warnOnce(`start ${program}`, `${program} cannot be started: ${message}`),
      output: (chunk) => void (words = `${words}${Buffer.from(chunk).toString()}`.slice(0, 500)),
      exited: (code) => {
        // arping -U ends with 1 where nobody answers, as nobody has to.
        const isFault = code !== null && (code > 1 || (isSix(vip) && code !== 0));
        if (isFault && this.#timers.has(vip)) this.#log.warn({ vip: vipText(vip), status: code, output: words.trim() }, `${program} failed`);
      },
    });
  }

  #warnOnce(key: string, message: string): void {
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.#log.warn(message);
  }
}
