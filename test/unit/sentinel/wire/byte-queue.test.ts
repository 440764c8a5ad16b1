import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ByteQueue } from '../../../../src/sentinel/wire/byte-queue.js';

describe('ByteQueue', () => {
  test('agrees with a plain array under any sequence of append and skip', () => {
    const steps = fc.array(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 400 })), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (sequence) => {
        const queue = new ByteQueue();
        let model: number[] = [];
        for (const step of sequence) {
          if (typeof step === 'number') {
            const count = Math.min(step, model.length);
            queue.skip(count);
            model = model.slice(count);
          } else {
            queue.append(step);
            model.push(...step);
          }
          expect(queue.length).toBe(model.length);
          expect(queue.indexOf(10)).toBe(model.indexOf(10));
          expect([queue.at(-1), queue.at(0), queue.at(model.length)]).toEqual([-1, model[0] ?? -1, -1]);
          expect(queue.text(0, model.length)).toBe(Buffer.from(model).toString('utf8'));
        }
      }),
    );
  });

  test('keeps its own copy of what was appended', () => {
    const queue = new ByteQueue();
    const chunk = Buffer.from('abc');
    queue.append(chunk);
    chunk.fill(0);
    expect(queue.text(0, 3)).toBe('abc');
  });
});
