/**
 * What two groups of servers are compared by: INFO and ROLE as relations instead of numbers and ids.
 *
 * Ids become letters in the order in which they are first seen; offsets count bytes on one side and entries on the other, so
 * only "more, as much, less" is kept.
 */
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';

/** One node as it answers right now; a text instead when it does not. */
export type Look = string | { readonly info: string; readonly role: RespValue; readonly keys: string };

/** Letters for replication ids, kept over a whole script. */
export class Letters {
  readonly #known = new Map<string, string>([['0'.repeat(40), '-']]);

  of(id: string): string {
    let letter = this.#known.get(id);
    if (letter === undefined) this.#known.set(id, (letter = String.fromCharCode(64 + this.#known.size)));
    return letter;
  }

  /** Letters given by a view that is thrown away are given again. */
  copy(): Letters {
    const copy = new Letters();
    for (const [id, letter] of this.#known) copy.#known.set(id, letter);
    return copy;
  }
}

/** Lines about all nodes; `numberOf` names a node by its address. */
export function viewOf(looks: readonly Look[], letters: Letters, numberOf: (host: string, port: string) => string): string[] {
  const fields = looks.map((look) => (typeof look === 'string' ? null : fieldsOf(look.info)));
  return looks.map((look, index) => {
    const own = fields[index];
    if (typeof look === 'string' || own == null) return `${index + 1} ${typeof look === 'string' ? look : ''}`;
    const offset = Number(own('master_repl_offset'));
    const isReplica = own('role') === 'slave';
    const second = Number(own('second_repl_offset'));
    const words = [
      `${index + 1} ${own('role')} loading=${own('loading')} id=${letters.of(own('master_replid'))} id2=${letters.of(own('master_replid2'))}`,
      `second=${second === -1 ? 'none' : second === offset + 1 ? 'here' : second < offset + 1 ? 'passed' : 'ahead'}`,
      `rank=${rankOf(own, fields)} slaves=${own('connected_slaves')}`,
      ...(isReplica ? replicaWords(own, numberOf) : []),
      `full=${own('sync_full')} ok=${own('sync_partial_ok')} err=${own('sync_partial_err')}`,
      `keys=${look.keys}`,
      roleWords(look.role, offset, numberOf),
    ];
    return words.join(' ');
  });
}

type Fields = (name: string) => string;

function fieldsOf(info: string): Fields {
  const found = new Map(info.split(/\r?\n/).flatMap((line) => (line.includes(':') ? [[line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]] : [])));
  return (name) => found.get(name) ?? '?';
}

/** How many nodes of the same history have gone further. */
function rankOf(own: Fields, all: readonly (Fields | null)[]): number {
  const offsetOf = (fields: Fields): number => Number(fields('master_repl_offset'));
  const fellows = all.filter((fields) => fields?.('master_replid') === own('master_replid')) as Fields[];
  return new Set(fellows.map(offsetOf).filter((offset) => offset > offsetOf(own))).size;
}

function replicaWords(own: Fields, numberOf: (host: string, port: string) => string): string[] {
  const down = own('master_link_down_since_seconds');
  return [
    `of=${numberOf(own('master_host'), own('master_port'))} link=${own('master_link_status')} sync=${own('master_sync_in_progress')}`,
    `down=${down === '?' || down === '-1' ? down : 'since'} ro=${own('slave_read_only')} priority=${own('slave_priority')}`,
    `says=${own('slave_repl_offset') === own('master_repl_offset') ? 'offset' : Number(own('slave_repl_offset')) <= 1 ? 'nothing' : 'other'}`,
  ];
}

function roleWords(role: RespValue, offset: number, numberOf: (host: string, port: string) => string): string {
  if (role.kind !== 'array') return `ROLE ${role.kind}`;
  const [kind, second, third, state, at] = role.items.map(textOf);
  if (kind === 'master') {
    const list = role.items[2];
    const replicas = list?.kind !== 'array' ? [] : list.items.map((each) => (each.kind === 'array' ? each.items.map(textOf) : []));
    const followers = replicas.map(([host = '', port = '', acked]) => `${numberOf(host, port)} ${acked === String(offset)}`);
    return `ROLE master ${second === String(offset) ? 'here' : second} [${followers.sort().join(', ')}]`;
  }
  // How far a handshake has come is a matter of milliseconds.
  const shown = state === 'connecting' || state === 'handshake' ? 'connect' : state;
  return `ROLE ${kind} of ${numberOf(second ?? '', third ?? '')} ${shown} ${at === String(offset) ? 'here' : at}`;
}

export function textOf(value: RespValue): string {
  return value.kind === 'integer' ? String(value.value) : 'text' in value ? value.text : value.kind;
}

/** A reply by its kind and, of an error, its first word; `anyNumber` for counts that include bystanders. */
export function brief(value: RespValue | null, anyNumber = false): string {
  if (value === null) return 'closed';
  if (value.kind === 'error') return `-${value.text.split(' ')[0]}`;
  if (value.kind === 'array') return `[${value.items.map((item) => brief(item)).join(', ')}]`;
  if (value.kind === 'integer') return anyNumber ? ':n' : `:${value.value}`;
  if (value.kind === 'bulk') return value.text.includes('\n') ? 'text' : value.text;
  return value.kind === 'simple' ? `+${value.text}` : value.kind;
}
