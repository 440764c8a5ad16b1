/**
 * `bind-source-addr`: links that leave this machine from a given address.
 *
 * ioredis has no option for it, but takes another connector; this one differs from its own by `localAddress` alone.
 */
import { AbstractConnector } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

interface Destination {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: RedisOptions['tls'];
}

/** The connector class for links from `localAddress`. */
export function boundConnector(localAddress: string): NonNullable<RedisOptions['Connector']> {
  return class BoundConnector extends AbstractConnector {
    readonly #destination: Destination;

    constructor(options: unknown) {
      super((options as { disconnectTimeout?: number }).disconnectTimeout ?? 2_000);
      this.#destination = options as Destination;
    }

    override connect(): Promise<Socket> {
      const { host = '', port = 0, tls } = this.#destination;
      this.connecting = true;
      const stream = tls === undefined ? connect({ host, port, localAddress }) : connectTls({ ...tls, host, port, ...{ localAddress } });
      stream.once('error', (fault) => (this.firstError = fault));
      this.stream = stream;
      return Promise.resolve(stream);
    }
  };
}
