/**
 * The copies that every other node takes of the new master, and how far they are: not more at once than parallel-syncs allows,
 * the others wait and serve what they have.
 *
 * A copy that goes from memory to memory (repl-diskless-sync) has no size beforehand: the target's data in memory stands for it.
 */
import { messageOf } from '../../errors.js';
import type { Address } from '../../sentinel/wire/address.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Context, Progress } from '../context.js';
import { infoFields, numberIn } from '../fields.js';
import { Absences } from './absences.js';

const MEGABYTE = 1024 * 1024;

/** What a node says of itself. */
interface Look {
  readonly name: string;
  /** Null: it follows the target, and the link is up. */
  readonly missing: string | null;
  /** Bytes of a copy that is under way, as INFO replication tells them; size 0 = nobody knows. */
  readonly readBytes: number;
  readonly sizeBytes: number;
}

export class Copies {
  readonly absences: Absences;
  /** Who was seen to copy: with the link up it has its copy, whatever sentinels have seen of that. */
  readonly #copied = new Set<string>();
  #looks: readonly Look[] = [];
  #debts: ReadonlySet<string> = new Set();
  #dataBytes = 0;

  constructor(readonly context: Context, readonly nodes: readonly Address[]) {
    this.absences = new Absences(context.links);
  }

  /** Null when every node that answers has what the target has. */
  async whyNotDone(): Promise<string | null> {
    const { context } = this;
    this.#looks = await Promise.all(this.nodes.map((address) => this.#look(address)));
    for (const { name, readBytes } of this.#looks) if (readBytes > 0) this.#copied.add(name);
    this.#debts = await context.group.debts(context.plan.sentinels);
    const missing = this.#looks.flatMap((look) => look.missing ?? []);
    if (missing.length > 0) return missing.join('; ');
    return this.absences.names.size > 0 || this.#debts.size === 0 ? null : `${[...this.#debts].join(', ')} still copies in full`;
  }

  /** One node after the other: words for the one that copies now, and the part of all copies that is there. */
  progress(): Progress {
    const open = this.#looks.filter(({ name, missing }) => missing !== null || (this.#debts.has(name) && !this.#copied.has(name)));
    const parts = open.map(({ readBytes, sizeBytes }) => (sizeBytes === 0 ? 0 : Math.min(0.99, readBytes / sizeBytes)));
    const finished = this.nodes.length - this.absences.names.size - open.length;
    const part = (finished + parts.reduce((sum, each) => sum + each, 0)) / Math.max(1, this.nodes.length - this.absences.names.size);
    const unseen = this.#looks.filter((look) => this.#debts.has(look.name) && !open.includes(look));
    const words = [
      ...open.filter(({ readBytes }) => readBytes > 0).map(copyWords),
      ...open.flatMap(({ missing, readBytes }) => (missing !== null && readBytes === 0 ? [missing] : [])),
      ...open.flatMap(({ name, missing }) => (missing === null ? [`${name} waits for its turn`] : [])),
      ...unseen.map(({ name }) => `${name} has its copy, which the sentinels have yet to see`),
    ];
    return { text: words.join('; '), part };
  }

  async #look(address: Address): Promise<Look> {
    const { links, plan } = this.context;
    const name = formatAddress(address);
    const say = (missing: string | null): Look => ({ name, missing, readBytes: 0, sizeBytes: 0 });
    if (this.absences.names.has(name)) return say(null);
    try {
      const info = infoFields(await links.text(address, 'INFO', 'replication'));
      this.absences.answered(address);
      if (info.get('role') !== 'slave') return say(`${name} is no replica yet`);
      const followed = { host: info.get('master_host') ?? '', port: numberIn(info, 'master_port') };
      if (!sameAddress(followed, plan.target)) return say(`${name} follows ${formatAddress(followed)}`);
      if (info.get('master_link_status') === 'up') return say(null);
      const readBytes = Math.max(0, numberIn(info, 'master_sync_read_bytes'));
      const sizeBytes = numberIn(info, 'master_sync_total_bytes');
      return { name, missing: `${name} copies the new master`, readBytes, sizeBytes: sizeBytes > 0 ? sizeBytes : await this.#estimate() };
    } catch (fault) {
      return say((await this.absences.isGivenUp(address)) ? null : messageOf(fault));
    }
  }

  async #estimate(): Promise<number> {
    const { links, plan } = this.context;
    if (this.#dataBytes === 0) {
      this.#dataBytes = numberIn(infoFields(await links.text(plan.target, 'INFO', 'memory').catch(() => '')), 'used_memory_dataset');
    }
    return this.#dataBytes;
  }
}

function copyWords({ name, readBytes, sizeBytes }: Look): string {
  const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(bytes < 10 * MEGABYTE ? 1 : 0);
  return `${name} copies the new master: ${megabytes(readBytes)} of ${megabytes(Math.max(readBytes, sizeBytes))} MB`;
}
