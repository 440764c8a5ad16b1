import { expect, test } from '@jest/globals';
import { MessageFramer } from '../../../src/dns/tcp-framing.js';
import { createPrng, nextBelow } from '../../../src/prng.js';

const framed = (message: Buffer): Buffer => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);

/** All messages that come out when the stream arrives in these pieces, and whether one is left open. */
function cut(pieces: readonly Buffer[]): { messages: string[]; inside: boolean } {
  const framer = new MessageFramer();
  const messages: string[] = [];
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const taken = framer.take(piece, at);
      expect(taken.at).toBeGreaterThan(at);
      at = taken.at;
      if (taken.message !== null) messages.push(taken.message.toString('hex'));
    }
  }
  return { messages, inside: framer.isInside };
}

test.each([
  ['one message', [Buffer.from('hello')], Buffer.alloc(0)],
  ['three pipelined', [Buffer.from('a'), Buffer.alloc(300, 7), Buffer.from('xyz')], Buffer.alloc(0)],
  ['empty messages between', [Buffer.alloc(0), Buffer.from('b'), Buffer.alloc(0)], Buffer.alloc(0)],
  ['half a length behind', [Buffer.from('q')], Buffer.from([0])],
  ['a length without message behind', [Buffer.from('q')], Buffer.from([0, 9])],
  ['a cut message behind', [Buffer.from('q')], Buffer.from([0, 9, 1, 2])],
  ['the longest', [Buffer.alloc(65_535, 1)], Buffer.alloc(0)],
] as const)('%s: whole, byte by byte, at random', (_name, messages, rest) => {
  const stream = Buffer.concat([...messages.map(framed), rest]);
  const expected = { messages: messages.map((message) => message.toString('hex')), inside: rest.length > 0 };
  expect(cut([stream])).toEqual(expected);
  if (stream.length < 1000) expect(cut([...stream].map((byte) => Buffer.from([byte])))).toEqual(expected);
  const prng = createPrng(stream.length);
  for (let round = 0; round < 20; round++) {
    const pieces: Buffer[] = [];
    for (let at = 0; at < stream.length; ) {
      const size = 1 + nextBelow(prng, Math.max(4, stream.length >> 2));
      pieces.push(stream.subarray(at, at + size));
      at += size;
    }
    expect(cut(pieces)).toEqual(expected);
  }
});
