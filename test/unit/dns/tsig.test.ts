/** TSIG against what dig and BIND exchanged: their signatures are right by ours, and ours are theirs, byte by byte. */
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { endOfName, readQuery, readRecords } from '../../../src/dns/query.js';
import type { TsigRecord } from '../../../src/dns/query.js';
import { readSecret, signed, signedNext, TSIG_ERROR, tsigBytes, verify, withSignedError, withUnsignedError } from '../../../src/dns/tsig.js';
import type { TsigKey } from '../../../src/dns/tsig.js';
import { tsigKey } from '../../../src/dns/tsig-key.js';
import { queryBytes } from './ask.js';

interface Vector {
  readonly at: number;
  readonly request: string;
  readonly replies: readonly string[];
}
const vectors = JSON.parse(readFileSync(new URL('./tsig-vectors.json', import.meta.url), 'utf8')) as Record<string, Vector>;
const key = tsigKey('Key.Example.', Buffer.from(Array.from({ length: 32 }, (_, index) => index)));

interface Captured {
  readonly bytes: Buffer;
  readonly tsig: TsigRecord;
  /** Without its signature. */
  readonly bare: Buffer;
}

function captured(hex: string): Captured {
  const bytes = Buffer.from(hex, 'hex');
  const tsig = readRecords(bytes, bytes.readUInt16BE(4) === 0 ? 12 : endOfName(bytes, 12, false) + 4)?.tsig;
  if (tsig === undefined || tsig === null) throw new Error('no signature');
  const bare = Buffer.from(bytes.subarray(0, tsig.at));
  bare.writeUInt16BE(bare.readUInt16BE(10) - 1, 10);
  return { bytes, tsig, bare };
}

function vector(name: string): { at: number; request: Captured; replies: Captured[] } {
  const { at, request, replies } = vectors[name] as Vector;
  return { at, request: captured(request), replies: replies.map(captured) };
}

const check = ({ bytes, tsig }: Captured, prior: Buffer | null, at: number, by: TsigKey | null = key): unknown => verify(by, bytes, tsig, prior, at);

describe('what BIND and dig signed', () => {
  test('a query and its answer', () => {
    const { at, request, replies: [reply] } = vector('answer');
    expect(check(request, null, at)).toEqual({ kind: 'valid' });
    expect(check(reply as Captured, request.tsig.mac, at)).toEqual({ kind: 'valid' });
    expect(signed(key, request.bare, null, at).message).toEqual(request.bytes);
    expect(signed(key, (reply as Captured).bare, request.tsig.mac, at).message).toEqual((reply as Captured).bytes);
  });

  test('the five messages of a transfer, each over the one before', () => {
    const { at, request, replies } = vector('transfer');
    expect(replies).toHaveLength(5);
    let prior = request.tsig.mac;
    for (const [index, { bare, bytes, tsig }] of replies.entries()) {
      const made = (index === 0 ? signed : signedNext)(key, bare, prior, at);
      expect(made).toEqual({ message: bytes, mac: tsig.mac });
      prior = made.mac;
    }
  });

  test('unknown key and wrong secret: the error without a MAC', () => {
    for (const [name, error] of [['badKey', TSIG_ERROR.BADKEY], ['badSignature', TSIG_ERROR.BADSIG]] as const) {
      const { at, request, replies: [reply] } = vector(name);
      expect(check(request, null, at)).toEqual({ kind: 'unsigned', error });
      expect(withUnsignedError((reply as Captured).bare, request.tsig, error)).toEqual((reply as Captured).bytes);
    }
  });

  test('wrong time and half a MAC: the error signed, for the time with both clocks', () => {
    for (const [name, error] of [['badTime', TSIG_ERROR.BADTIME], ['badTruncation', TSIG_ERROR.BADTRUNC]] as const) {
      const { at, request, replies: [reply] } = vector(name);
      expect(check(request, null, at)).toEqual({ kind: 'signed', error });
      expect(withSignedError(key, (reply as Captured).bare, request.tsig, error, at)).toEqual((reply as Captured).bytes);
    }
  });
});

describe('verification', () => {
  const { at, request } = vector('answer');

  test('the fudge counts both ways, and not beyond', () => {
    for (const off of [-300, 300]) expect(check(request, null, at + off)).toEqual({ kind: 'valid' });
    for (const off of [-301, 301]) expect(check(request, null, at + off)).toEqual({ kind: 'signed', error: TSIG_ERROR.BADTIME });
  });

  test('a bit anywhere makes it wrong; case of the key name and the id do not', () => {
    for (let bit = 8 * 12; bit < request.tsig.at * 8; bit += 5) {
      const bytes = Buffer.from(request.bytes);
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(verify(key, bytes, request.tsig, null, at)).toEqual({ kind: 'unsigned', error: TSIG_ERROR.BADSIG });
    }
    const other = Buffer.from(request.bytes);
    other.write('KEY', request.tsig.at + 1, 'latin1');
    other.writeUInt16BE(1, 0);
    expect(check(captured(other.toString('hex')), null, at)).toEqual({ kind: 'valid' });
  });

  test('no key, another key, another algorithm', () => {
    const badKey = { kind: 'unsigned', error: TSIG_ERROR.BADKEY };
    expect(check(request, null, at, null)).toEqual(badKey);
    expect(check(request, null, at, tsigKey('key.example.org.', Buffer.alloc(32)))).toEqual(badKey);
    expect(verify(key, request.bytes, { ...request.tsig, algorithm: Buffer.from('\x08hmac-md5\x00', 'latin1') }, null, at)).toEqual(badKey);
  });

  test('no MAC is a bad one; MACs too long or too short for any rule are no form', () => {
    const withMac = (mac: Buffer): unknown => verify(key, request.bytes, { ...request.tsig, mac }, null, at);
    expect(withMac(Buffer.alloc(0))).toEqual({ kind: 'unsigned', error: TSIG_ERROR.BADSIG });
    for (const length of [1, 10, 15, 33, 64]) expect(withMac(Buffer.alloc(length))).toEqual({ kind: 'malformed' });
    expect(withMac(Buffer.alloc(16))).toEqual({ kind: 'unsigned', error: TSIG_ERROR.BADSIG });
  });

  test('a reply to another request', () => {
    const { replies: [reply] } = vector('answer');
    expect(check(reply as Captured, Buffer.alloc(32), at)).toEqual({ kind: 'unsigned', error: TSIG_ERROR.BADSIG });
  });

  test('the room kept for a signature is what it takes', () => {
    const query = queryBytes('cache.redis.internal. A edns=1232');
    const { message } = signed(key, query, null, at);
    expect(message.length - query.length).toBe(tsigBytes(key));
    expect(readQuery(message)).toMatchObject({ sound: true, edns: { udpBytes: 1232 } });
  });
});

describe('secrets', () => {
  test.each([
    ['AAECAwQFBgcICQoLDA0ODw==\n', 16], [' AAECAwQFBgcICQoL\nDA0ODxAREhMUFRYXGBkaGxwdHh8= ', 32],
  ])('%j', (text, bytes) => expect(readSecret(text)).toMatchObject({ kind: 'secret', secret: { length: bytes } }));

  test.each([
    ['', 'holds no base64'], ['secret!', 'holds no base64'], ['key "k" { secret "x"; };', 'holds no base64'],
    ['four words of text', 'holds no base64'],
    ['c2VjcmV0', 'holds a secret of 6 bytes, expected at least 16'],
  ])('%j', (text, message) => expect(readSecret(text)).toEqual({ kind: 'misfit', message }));
});
