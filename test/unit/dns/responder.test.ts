import { describe, expect, test } from '@jest/globals';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LimitedLog } from '../../../src/dns/limited-log.js';
import { Responder } from '../../../src/dns/responder.js';
import { FileSerialStore } from '../../../src/dns/serial-store.js';
import { queryBytes, render, sampleZone } from './ask.js';

function recordingLog(): { lines: string[]; log: Record<'debug' | 'info' | 'warn' | 'error', (context: object, message: string) => void> } {
  const lines: string[] = [];
  const at = (level: string) => (context: object, message: string): void => {
    lines.push(`${level} ${message} ${JSON.stringify(context)}`);
  };
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}

describe('a limited log', () => {
  test('one line per topic and ten seconds, the next says how many were left out', () => {
    const { lines, log } = recordingLog();
    let now = 0;
    const limited = new LimitedLog(log, () => now);
    for (now = 0; now < 10_000; now += 1000) limited.write('warn', 'noise', () => ({ now }));
    limited.write('error', 'other', () => ({}));
    now = 10_000;
    limited.write('warn', 'noise', () => ({ now }));
    expect(lines).toEqual(['warn noise {"now":0}', 'error other {}', 'warn noise {"now":10000,"suppressed":9}']);
  });
});

describe('the responder', () => {
  const zone = sampleZone();
  test('counts replies, silence and garbage, and logs garbage once', () => {
    const { lines, log } = recordingLog();
    const responder = new Responder(() => zone, log);
    responder.respond(queryBytes('cache.redis.internal. A'), 'udp', '10.0.0.9');
    responder.respond(queryBytes('none.redis.internal. A'), 'tcp', '10.0.0.9');
    for (let round = 0; round < 1000; round++) {
      expect(responder.respond(Buffer.alloc(3), 'udp', '10.0.0.9')).toBeNull();
      responder.respond(Buffer.alloc(12), 'udp', '10.0.0.9');
    }
    expect(responder.counters).toMatchObject({ udpQueries: 2001, tcpQueries: 1, silent: 1000, exceptions: 0,
      replies: { 0: 1, 1: 1000, 3: 1 } });
    expect(lines).toHaveLength(2);
  });

  test('a bug in answering is a SERVFAIL, a counter and a line, never an exception', () => {
    const { lines, log } = recordingLog();
    const broken = new Responder(() => zone, log, () => {
      throw new Error('bug');
    });
    const reply = broken.respond(queryBytes('cache.redis.internal. A id=77 +rd'), 'udp', '10.0.0.9') as Buffer;
    expect(render(reply)).toBe('SERVFAIL rd no-question');
    expect(reply.readUInt16BE(0)).toBe(77);
    expect(broken.respond(Buffer.alloc(3), 'udp', '10.0.0.9')).toBeNull();
    expect(broken.respond(reply, 'udp', '10.0.0.9')).toBeNull();
    expect(broken.counters.exceptions).toBe(3);
    expect(lines.filter((line) => line.startsWith('error dns answer failed'))).toHaveLength(1);
  });
});

describe('the serial file', () => {
  test('keeps a number, and nothing beside it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'serial-'));
    try {
      const store = new FileSerialStore(join(folder, 'dns-serial'));
      expect(store.load()).toBe(0);
      await store.save(4_294_967_295);
      expect(store.load()).toBe(4_294_967_295);
      // Those that come meanwhile are skipped, the last one is not.
      const all = [5, 6, 7].map((serial) => store.save(serial));
      await Promise.all(all);
      expect(new FileSerialStore(join(folder, 'dns-serial')).load()).toBe(7);
      expect(readdirSync(folder)).toEqual(['dns-serial']);
      for (const junk of ['', 'x', '-1', '1.5', '99999999999']) {
        writeFileSync(join(folder, 'dns-serial'), junk);
        expect(store.load()).toBe(0);
      }
      await expect(new FileSerialStore(join(folder, 'none', 'x')).save(1)).rejects.toThrow(/ENOENT/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
