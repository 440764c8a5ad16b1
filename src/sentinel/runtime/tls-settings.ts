/**
 * TLS as sentinel.conf describes it: contexts for our port and for our links, made once at the start.
 *
 * Mirrors tlsConfigure in tls.c. A chain must lead to the given authorities in both directions; names in certificates are not
 * compared with addresses, as in the server (nodes are reached by IP). `tls-replication yes` concerns every outgoing link.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ConnectionOptions, SecureContextOptions, SecureVersion, TlsOptions } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { EXIT, FatalError, messageOf } from '../../errors.js';
import type { ConfFile } from './conf-file.js';

export interface TlsSettings {
  /** Null without tls-port. */
  readonly server: TlsListenOptions | null;
  /** Null unless tls-replication is yes. */
  readonly links: ConnectionOptions | null;
}

export interface TlsListenOptions {
  readonly port: number;
  readonly options: TlsOptions;
  /** A certificate of the client is refused when it does not lead to our authorities, but need not be there. */
  readonly certificateOptional: boolean;
}

const VERSIONS: readonly SecureVersion[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'];
const HANDSHAKE_LIMIT_MS = 10_000;

/** @throws FatalError CONFIG_INVALID with every fault: files that can't be read, keys that don't fit, words that are none. */
export function tlsSettingsOf(file: ConfFile): TlsSettings {
  const reader = new TlsReader(file);
  const port = Number(reader.word('tls-port') ?? 0);
  const settings = {
    server: port === 0 ? null : reader.server(port),
    links: reader.word('tls-replication')?.toLowerCase() === 'yes' ? reader.links() : null,
  };
  if (reader.faults.length > 0) throw new FatalError('CONFIG_INVALID', `TLS settings of ${file.path}: ${reader.faults.join('; ')}`, EXIT.badConfig);
  return settings;
}

class TlsReader {
  readonly faults: string[] = [];
  readonly #file: ConfFile;

  constructor(file: ConfFile) {
    this.#file = file;
  }

  word(name: string): string | undefined {
    return this.#file.conf.server.get(name)?.at(-1)?.[0] || undefined;
  }

  server(port: number): TlsListenOptions {
    const clients = this.word('tls-auth-clients')?.toLowerCase() ?? 'yes';
    if (!['yes', 'no', 'optional'].includes(clients)) this.faults.push(`tls-auth-clients ${clients}: must be yes, no or optional`);
    if (this.word('tls-cert-file') === undefined) this.faults.push('tls-port needs a tls-cert-file');
    const context = this.#context('tls', clients !== 'no');
    const options: TlsOptions = {
      ...context,
      requestCert: clients !== 'no',
      rejectUnauthorized: clients === 'yes',
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      honorCipherOrder: this.word('tls-prefer-server-ciphers')?.toLowerCase() === 'yes',
    };
    return { port, options, certificateOptional: clients === 'optional' };
  }

  links(): ConnectionOptions {
    const own = this.word('tls-client-cert-file') === undefined ? 'tls' : 'tls-client';
    // Whose certificate it is says the chain, not the name in it: nodes are known by address.
    return { ...this.#context(own, true), rejectUnauthorized: true, checkServerIdentity: () => undefined };
  }

  #context(prefix: 'tls' | 'tls-client', needsAuthority: boolean): SecureContextOptions {
    const ca = this.#authorities();
    if (needsAuthority && ca.length === 0) this.faults.push('a tls-ca-cert-file or tls-ca-cert-dir is needed to judge the certificates of others');
    const [cert, key] = [this.#read(`${prefix}-cert-file`), this.#read(`${prefix}-key-file`)];
    const passphrase = this.word(`${prefix}-key-file-pass`);
    const dhparam = this.#read('tls-dh-params-file');
    const ciphers = [this.word('tls-ciphersuites'), this.word('tls-ciphers')].filter((each) => each !== undefined).join(':');
    const context: SecureContextOptions = {
      ...(ca.length === 0 ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(passphrase === undefined ? {} : { passphrase }),
      ...(dhparam === undefined ? {} : { dhparam }),
      ...(ciphers === '' ? {} : { ciphers }),
      ...this.#versions(),
    };
    try {
      createSecureContext(context);
    } catch (fault) {
      this.faults.push(`${prefix}-cert-file and ${prefix}-key-file: ${messageOf(fault)}`);
    }
    return context;
  }

  #versions(): Pick<SecureContextOptions, 'minVersion' | 'maxVersion'> {
    const words = (this.word('tls-protocols') ?? 'TLSv1.2 TLSv1.3').split(/\s+/).filter((each) => each !== '').map((each) => each.toLowerCase());
    const wanted = VERSIONS.filter((version) => words.includes(version.toLowerCase()));
    const [first] = wanted;
    const last = wanted.at(-1);
    if (first === undefined || last === undefined || wanted.length !== new Set(words).size) {
      this.faults.push(`tls-protocols ${words.join(' ')}: the words are ${VERSIONS.join(' ')}`);
      return {};
    }
    return { minVersion: first, maxVersion: last };
  }

  #authorities(): Buffer[] {
    const one = this.#read('tls-ca-cert-file');
    const folder = this.word('tls-ca-cert-dir');
    return [...(one === undefined ? [] : [one]), ...(folder === undefined ? [] : this.#readFolder(resolve(this.#file.directory, folder)))];
  }

  /** Every file that holds a certificate, whatever its name: OpenSSL's hashed names are links to such. */
  #readFolder(folder: string): Buffer[] {
    try {
      const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
      return files.map((entry) => readFileSync(join(folder, entry.name))).filter((text) => text.includes('-----BEGIN CERTIFICATE-----'));
    } catch (fault) {
      this.faults.push(`tls-ca-cert-dir: ${messageOf(fault)}`);
      return [];
    }
  }

  #read(name: string): Buffer | undefined {
    const path = this.word(name);
    if (path === undefined) return undefined;
    try {
      return readFileSync(resolve(this.#file.directory, path));
    } catch (fault) {
      this.faults.push(`${name}: ${messageOf(fault)}`);
      return undefined;
    }
  }
}
