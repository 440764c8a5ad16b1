/** Malformed and hostile messages: the answer is FORMERR or silence, small, cheap, and never an exception. */
import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { answerQuery } from '../../../src/dns/answer.js';
import { parseName } from '../../../src/dns/name.js';
import { createPrng, nextBelow, nextUint32 } from '../../../src/prng.js';
import type { Prng } from '../../../src/prng.js';
import { ask, assertStrict, optRecord, queryBytes, sampleZone } from './ask.js';

const zone = sampleZone();
const GOOD = queryBytes('cache.redis.internal. A');
const WITH_OPT = queryBytes('cache.redis.internal. A edns=1232');

/** `message` with other counts in its header, and `tail` behind it. */
function counted(message: Buffer, [questions, answers, authorities, additionals]: readonly number[],
  tail: Buffer = Buffer.alloc(0)): Buffer {
  const out = Buffer.concat([message, tail]);
  [questions, answers, authorities, additionals].forEach((count, index) => out.writeUInt16BE(count ?? 0, 4 + 2 * index));
  return out;
}

/** A header with these question bytes behind it. */
function question(bytes: Buffer, counts: readonly number[] = [1, 0, 0, 0]): Buffer {
  return counted(Buffer.concat([GOOD.subarray(0, 12), bytes]), counts);
}

const TYPE_A_IN = Buffer.from([0, 1, 0, 1]);
const OPT = optRecord(1232);
const record = (owner: string, type: number, data: Buffer): Buffer => {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([Buffer.from(owner, 'hex'), fixed, data]);
};
const A_RECORD = record('c00c', 1, Buffer.from([10, 0, 0, 1]));

describe('silence', () => {
  test.each([
    ['an empty datagram', Buffer.alloc(0)],
    ...Array.from({ length: 11 }, (_, index) => [`${index + 1} bytes`, GOOD.subarray(0, index + 1)] as const),
    ['a response', Buffer.from([...GOOD.subarray(0, 2), 0x80, ...GOOD.subarray(3)])],
    ['a response of 12 bytes', Buffer.from('123480000000000000000000', 'hex')],
  ] as const)('%s', (_name, message) => {
    expect(answerQuery(zone, message, 'udp')).toBeNull();
    expect(answerQuery(zone, message, 'tcp')).toBeNull();
  });
});

describe('FORMERR without OPT', () => {
  const WHOLE = 'FORMERR';
  const BARE = 'FORMERR no-question';
  test.each([
    ['12 zero bytes', Buffer.alloc(12), BARE],
    ['no question', counted(GOOD.subarray(0, 12), [0, 0, 0, 0]), BARE],
    ['no question, a cookie in OPT',
      counted(GOOD.subarray(0, 12), [0, 0, 0, 1], optRecord(1232, 0, false, Buffer.from('000a00080102030405060708', 'hex'))), BARE],
    ['no question, but its bytes', counted(GOOD, [0, 0, 0, 0]), BARE],
    ['two questions', counted(GOOD, [2, 0, 0, 0], GOOD.subarray(12)), BARE],
    ['65535 questions', counted(GOOD, [65535, 0, 0, 0]), BARE],
    ['the question is missing', counted(GOOD.subarray(0, 12), [1, 0, 0, 0]), BARE],
    ['the name is cut', GOOD.subarray(0, 20), BARE],
    ['the root label is missing', GOOD.subarray(0, GOOD.length - 5), BARE],
    ['type and class are cut', GOOD.subarray(0, GOOD.length - 1), BARE],
    ['a label of 64', question(Buffer.concat([Buffer.from([64]), Buffer.alloc(64, 97), Buffer.from([0]), TYPE_A_IN])), BARE],
    ['a label of reserved form 0x80', question(Buffer.concat([Buffer.from([0x80, 97, 0]), TYPE_A_IN])), BARE],
    ['a name of 256 bytes',
      question(Buffer.concat([...Array.from({ length: 51 }, () => Buffer.from('\x04aaaa')), Buffer.from([0]), TYPE_A_IN])), BARE],
    ['a name of 300 bytes',
      question(Buffer.concat([...Array.from({ length: 60 }, () => Buffer.from('\x04aaaa')), Buffer.from([0]), TYPE_A_IN])), BARE],
    ['a pointer to itself', question(Buffer.concat([Buffer.from([0xc0, 0x0c]), TYPE_A_IN])), BARE],
    ['a pointer behind a label', question(Buffer.concat([Buffer.from('\x05cache'), Buffer.from([0xc0, 0x0c]), TYPE_A_IN])), BARE],
    ['trailing junk', counted(GOOD, [1, 0, 0, 0], Buffer.from('junk')), WHOLE],
    ['one byte of junk behind OPT', Buffer.concat([WITH_OPT, Buffer.from([0])]), WHOLE],
    ['an announced record is missing', counted(GOOD, [1, 1, 0, 0]), WHOLE],
    ['an announced OPT is missing', counted(GOOD, [1, 0, 0, 1]), WHOLE],
    ['two OPT', counted(GOOD, [1, 0, 0, 2], Buffer.concat([OPT, OPT])), WHOLE],
    ['OPT in Answer', counted(GOOD, [1, 1, 0, 0], OPT), WHOLE],
    ['OPT in Authority', counted(GOOD, [1, 0, 1, 0], OPT), WHOLE],
    ['OPT owner is not the root', counted(GOOD, [1, 0, 0, 1], record('016100', 41, Buffer.alloc(0))), WHOLE],
    ['OPT owner is a pointer', counted(GOOD, [1, 0, 0, 1], record('c00c', 41, Buffer.alloc(0))), WHOLE],
    ['a cut OPT', WITH_OPT.subarray(0, WITH_OPT.length - 1), WHOLE],
    ['an option longer than OPT', counted(GOOD, [1, 0, 0, 1], optRecord(1232, 0, false, Buffer.from('000a000801', 'hex'))), WHOLE],
    ['an option header cut', counted(GOOD, [1, 0, 0, 1], optRecord(1232, 0, false, Buffer.from('000a00', 'hex'))), WHOLE],
    ['a broken OPT of version 1', counted(GOOD, [1, 0, 0, 1], optRecord(1232, 1, false, Buffer.from('000a00', 'hex'))), WHOLE],
    ['RDATA longer than the message', counted(GOOD, [1, 1, 0, 0], A_RECORD.subarray(0, A_RECORD.length - 1)), WHOLE],
    ['a record owner of reserved form', counted(GOOD, [1, 1, 0, 0], record('4000', 1, Buffer.alloc(4))), WHOLE],
    ['a pointer of one byte at the end', counted(GOOD, [1, 0, 0, 1], Buffer.concat([Buffer.alloc(10), Buffer.from([0xc0])])), WHOLE],
  ] as const)('%s', (_name, message, expected) => {
    expect(ask(zone, message)).toBe(expected);
    expect(ask(zone, message, 'tcp')).toBe(expected);
  });

  test('19 bytes that announce 4 x 65535 records cost no more than a good query', () => {
    const message = counted(Buffer.alloc(19), [65535, 65535, 65535, 65535]);
    const sections = counted(GOOD, [1, 65535, 65535, 65535]);
    for (const each of [message, sections]) {
      const start = performance.now();
      for (let round = 0; round < 100; round++) expect(answerQuery(zone, each, 'udp')?.readUInt8(3)).toBe(1);
      expect((performance.now() - start) / 100).toBeLessThan(5);
    }
  });
});

describe('well formed, if odd: answered', () => {
  const ANSWER = 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1';
  test.each([
    ['records in Answer and Authority', counted(GOOD, [1, 1, 1, 0], Buffer.concat([A_RECORD, A_RECORD])), ANSWER],
    ['records before OPT', counted(GOOD, [1, 0, 0, 2], Buffer.concat([A_RECORD, OPT])), `${ANSWER}; AR OPT 1232`],
    ['records behind OPT', counted(GOOD, [1, 0, 0, 2], Buffer.concat([OPT, A_RECORD])), `${ANSWER}; AR OPT 1232`],
    ['an owner whose pointer loops is not followed',
      counted(GOOD, [1, 1, 0, 0], record(`c0${GOOD.length.toString(16)}`, 1, Buffer.alloc(4))), ANSWER],
    ['rcode, AA, TC and RA set in the query', Buffer.from([...GOOD.subarray(0, 2), 0x06, 0x8f, ...GOOD.subarray(4)]), ANSWER],
    ['an extended rcode in the asker\'s OPT',
      counted(GOOD, [1, 0, 0, 1], Buffer.from('0000290200ff0000000000', 'hex')), `${ANSWER}; AR OPT 1232`],
  ] as const)('%s', (_name, message, expected) => expect(ask(zone, message)).toBe(expected));
});

describe('TSIG (RFC 8945): no key is shared, so every sound one is BADKEY', () => {
  const algorithm = parseName('hmac-sha256.') as Buffer;
  const rdata = (macBytes: number, extra = 0): Buffer => Buffer.concat([
    algorithm, Buffer.from('0000692ac5ff012c', 'hex'), Buffer.from([0, macBytes]),
      Buffer.alloc(macBytes, 0xab), Buffer.from('4d2200000000', 'hex'), Buffer.alloc(extra),
  ]);
  const tsig = (data: Buffer, owner = '036b657900'): Buffer => {
    const bytes = record(owner, 250, data);
    bytes.writeUInt16BE(255, owner.length / 2 + 2);
    return bytes;
  };

  test.each([
    ['foreign name too', counted(queryBytes('example.org. A'), [1, 0, 0, 1], tsig(rdata(32))), 'NOTAUTH; AR key. TSIG'],
    ['behind OPT', counted(GOOD, [1, 0, 0, 2], Buffer.concat([OPT, tsig(rdata(32))])), 'NOTAUTH; AR OPT 1232, key. TSIG'],
    ['before version', counted(GOOD, [1, 0, 0, 2], Buffer.concat([optRecord(512, 1), tsig(rdata(0))])), 'NOTAUTH; AR OPT 1232, key. TSIG'],
    ['key name by pointer', counted(GOOD, [1, 0, 0, 1], tsig(rdata(32), 'c00c')), 'NOTAUTH; AR cache.redis.internal. TSIG'],
    ['not last', counted(GOOD, [1, 0, 0, 2], Buffer.concat([tsig(rdata(32)), OPT])), 'FORMERR'],
    ['in Answer', counted(GOOD, [1, 1, 0, 0], tsig(rdata(32))), 'FORMERR'],
    ['two', counted(GOOD, [1, 0, 0, 2], Buffer.concat([tsig(rdata(32)), tsig(rdata(32))])), 'FORMERR'],
    ['MAC cut', counted(GOOD, [1, 0, 0, 1], tsig(rdata(32).subarray(0, 40))), 'FORMERR'],
    ['junk behind', counted(GOOD, [1, 0, 0, 1], tsig(rdata(32, 1))), 'FORMERR'],
    ['key name points at itself', counted(GOOD, [1, 0, 0, 1], tsig(rdata(32), `c0${GOOD.length.toString(16)}`)), 'FORMERR'],
    ['key name points into the header', counted(GOOD, [1, 0, 0, 1], tsig(rdata(32), 'c002')), 'FORMERR'],
  ] as const)('%s', (_name, message, expected) => expect(ask(zone, message)).toBe(expected));

  test('the refusal is unsigned, has error 17, the original id, and is no longer than the query', () => {
    const message = counted(GOOD, [1, 0, 0, 1], tsig(rdata(32)));
    const reply = answerQuery(zone, message, 'udp') as Buffer;
    expect(reply.length).toBeLessThanOrEqual(message.length);
    expect(reply.subarray(-16).toString('hex')).toBe(`0000692ac5ff012c${'0000'}4d22${'0011'}0000`);
  });
});

describe('fuzz', () => {
  /** A reply to anything is well formed, and to garbage no larger than header, question and OPT. */
  const check = (message: Buffer): void => {
    for (const transport of ['udp', 'tcp'] as const) {
      const reply = answerQuery(zone, message, transport);
      if (reply === null) continue;
      assertStrict(reply);
      if (reply.readUInt16BE(0) !== message.readUInt16BE(0)) throw new Error('another id');
      const refused = (reply.readUInt8(2) & 4) === 0;
      // An OPT with Extended DNS Error takes 17 bytes; nothing else is ever added to what came in.
      if (refused && reply.length > Math.max(message.length, 12) + 17) throw new Error(`amplified to ${reply.length} bytes`);
      if (transport === 'udp' && reply.length > 1232) throw new Error(`${reply.length} bytes by udp`);
    }
  };

  test('random bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => check(Buffer.from(bytes))), { numRuns: 3000, seed: 1 });
  });

  const mutated = (prng: Prng): Buffer => {
    const seeds = [GOOD, WITH_OPT, counted(GOOD, [1, 1, 1, 1], Buffer.concat([A_RECORD, A_RECORD, OPT])),
      queryBytes('_redis._tcp.cache.redis.internal. SRV edns=512')];
    let message = Buffer.from(seeds[nextBelow(prng, seeds.length)] as Buffer);
    for (let edits = 1 + nextBelow(prng, 4); edits > 0; edits--) {
      const at = nextBelow(prng, message.length + 1);
      const kind = nextBelow(prng, 4);
      if (kind === 0) message = message.subarray(0, at);
      else if (kind === 1) message = Buffer.concat([message.subarray(0, at), Buffer.from([nextUint32(prng) & 255]), message.subarray(at)]);
      else if (at < message.length) message[at] = kind === 2 ? nextUint32(prng) & 255 : (message[at] ?? 0) ^ (1 << nextBelow(prng, 8));
      if (message.length === 0) break;
    }
    return message;
  };

  test('mutations of good queries', () => {
    const prng = createPrng(20_240_601);
    let answered = 0;
    for (let round = 0; round < 30_000; round++) {
      const message = mutated(prng);
      try {
        check(message);
      } catch (error) {
        throw new Error(`for ${message.toString('hex')}`, { cause: error });
      }
      if ((answerQuery(zone, message, 'udp')?.readUInt8(3) ?? 1) === 0) answered += 1;
    }
    // The mutations must reach past the reader often enough to mean something.
    expect(answered).toBeGreaterThan(1000);
  });
});
