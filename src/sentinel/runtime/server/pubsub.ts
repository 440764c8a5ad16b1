/**
 * Who listens to which channel or pattern; SUBSCRIBE and its kin; and the delivery of events.
 *
 * Mirrors pubsub.c: one confirmation per channel, counts over channels and patterns, RESP3 pushes. A subscriber's confirmations
 * and messages are not silenced by CLIENT REPLY.
 */
import { globMatch } from '../../wire/glob.js';
import type { RespProtocol } from '../../wire/resp-encoder.js';
import { encodeReply } from '../../wire/resp-encoder.js';
import type { RespValue } from '../../wire/resp-value.js';
import { NULL, bulk, integer } from '../../wire/resp-value.js';
import type { Client } from './client.js';

type Registry = Map<string, Set<Client>>;

export class PubSub {
  readonly #channels: Registry = new Map();
  readonly #patterns: Registry = new Map();

  get channelCount(): number {
    return this.#channels.size;
  }

  get patternCount(): number {
    return this.#patterns.size;
  }

  /** Runs `subscribe`, `psubscribe`, `unsubscribe` or `punsubscribe`; the confirmations are its only reply. */
  execute(client: Client, command: string, names: readonly string[]): void {
    const registry = command.startsWith('p') ? this.#patterns : this.#channels;
    const held = command.startsWith('p') ? client.patterns : client.channels;
    if (!command.includes('un')) {
      for (const name of names) {
        held.add(name);
        registry.set(name, (registry.get(name) ?? new Set()).add(client));
        client.push(confirmation(command, name, client));
      }
      return;
    }
    const leaving = names.length > 0 ? names : [...held];
    for (const name of leaving) {
      held.delete(name);
      leave(registry, name, client);
      client.push(confirmation(command, name, client));
    }
    if (leaving.length === 0) client.push(confirmation(command, null, client));
  }

  /** Forgets a client that is gone. */
  remove(client: Client): void {
    for (const name of client.channels) leave(this.#channels, name, client);
    for (const name of client.patterns) leave(this.#patterns, name, client);
    client.channels.clear();
    client.patterns.clear();
  }

  /** Sends `payload` to the subscribers of `channel`, then to those of each pattern that fits; how many deliveries. */
  publish(channel: string, payload: string): number {
    const tail = [bulk(channel), bulk(payload)];
    let count = deliver(this.#channels.get(channel), [bulk('message'), ...tail]);
    for (const [pattern, clients] of this.#patterns) {
      if (globMatch(pattern, channel)) count += deliver(clients, [bulk('pmessage'), bulk(pattern), ...tail]);
    }
    return count;
  }
}

function confirmation(command: string, name: string | null, client: Client): RespValue {
  return { kind: 'push', items: [bulk(command), name === null ? NULL : bulk(name), integer(client.subscriptions)] };
}

function leave(registry: Registry, name: string, client: Client): void {
  const clients = registry.get(name);
  clients?.delete(client);
  if (clients?.size === 0) registry.delete(name);
}

function deliver(clients: ReadonlySet<Client> | undefined, items: readonly RespValue[]): number {
  if (clients === undefined) return 0;
  const encoded = new Map<RespProtocol, Buffer>();
  // A copy: a client that does not read is dropped, and so leaves the set, while we walk.
  for (const client of [...clients]) {
    const bytes = encoded.get(client.protocol) ?? encodeReply({ kind: 'push', items }, client.protocol);
    encoded.set(client.protocol, bytes);
    client.pushBytes(bytes);
  }
  return clients.size;
}
