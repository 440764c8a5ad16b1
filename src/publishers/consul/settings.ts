/**
 * What this output must be told: where Consul is, how to prove who we are, and how things are named there.
 *
 * The same fields as the `consul` block of pointsman.yaml (and the CONSUL_ variables), so that the configuration fits as it is.
 */

export interface ConsulSettings {
  /** Base URL without a path, e.g. `https://127.0.0.1:8501`. */
  readonly address: string;
  readonly mode: 'catalog' | 'agent';
  /** `{master}` is replaced by the master's label. */
  readonly service: string;
  readonly kvPrefix: string;
  readonly token: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly tlsServerName: string | null;
  /** Consul Enterprise only. */
  readonly namespace: string | null;
  readonly datacenter: string | null;
}
