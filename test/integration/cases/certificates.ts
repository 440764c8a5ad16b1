/**
 * Certificates for the TLS tests, made by openssl: an authority with a certificate for everybody, and a stranger's.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';

export const KEY_PASSWORD = 'k3y';

export interface Certificates {
  readonly folder: string;
  /** Holds nothing but the authority's certificate. */
  readonly authorityFolder: string;
  path(name: 'ca.crt' | 'node.crt' | 'node.key' | 'locked.key' | 'stranger.crt' | 'stranger.key'): string;
  client(name: 'node' | 'stranger' | null): ConnectionOptions;
}

/** `node.key` is also there encrypted with {@link KEY_PASSWORD}, as `locked.key`. */
export function makeCertificates(folder: string): Certificates {
  const authorityFolder = join(folder, 'authorities');
  mkdirSync(authorityFolder, { recursive: true });
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const newKey = (name: string): string[] =>
    ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${name}`, '-keyout', `${name}.key`];
  const authority = (name: string): void => openssl('req', '-x509', ...newKey(name), '-days', '2', '-out', `${name}.crt`);
  const certificate = (name: string, issuer: string): void => {
    openssl('req', ...newKey(name), '-out', `${name}.csr`);
    const signer = ['-CA', `${issuer}.crt`, '-CAkey', `${issuer}.key`, '-CAcreateserial'];
    openssl('x509', '-req', '-in', `${name}.csr`, ...signer, '-days', '2', '-out', `${name}.crt`);
  };
  authority('ca');
  certificate('node', 'ca');
  openssl('pkey', '-in', 'node.key', '-aes256', '-passout', `pass:${KEY_PASSWORD}`, '-out', 'locked.key');
  authority('other');
  certificate('stranger', 'other');
  openssl('x509', '-in', 'ca.crt', '-out', join(authorityFolder, 'lab.pem'));
  const path = (name: string): string => join(folder, name);
  const client = (name: 'node' | 'stranger' | null): ConnectionOptions => ({
    ca: readFileSync(path('ca.crt')),
    checkServerIdentity: () => undefined,
    ...(name === null ? {} : { cert: readFileSync(path(`${name}.crt`)), key: readFileSync(path(`${name}.key`)) }),
  });
  return { folder, authorityFolder, path, client };
}
