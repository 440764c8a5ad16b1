/**
 * What is fed with rubbish: every reader of bytes or text that a stranger, a peer, a server or an operator writes.
 *
 * A target draws inputs that are nearly right (pieces of the format, cut and mixed with noise) and says what must hold whatever
 * comes: no exception, no answer that grows beyond its input, the same meaning however the network cuts it.
 */
import fc from 'fast-check';
import { addressRange } from '../../src/dns/address-range.js';
import { Deliveries } from '../../src/dns/deliveries.js';
import { answerGuarded } from '../../src/dns/guarded-answer.js';
import type { TransferGate } from '../../src/dns/guarded-answer.js';
import type { DnsLog } from '../../src/dns/limited-log.js';
import { Responder } from '../../src/dns/responder.js';
import { tsigKey } from '../../src/dns/tsig-key.js';
import { loadConfig } from '../../src/config/load.js';
import { formatHello, parseHello } from '../../src/sentinel/wire/hello.js';
import { parseInfo } from '../../src/sentinel/wire/info.js';
import { RequestDecoder, RespError, RespReplyDecoder } from '../../src/sentinel/wire/resp-decoder.js';
import { loadSentinelConf, rewriteConf, SENTINEL_KEYS } from '../../src/sentinel/wire/sentinel-conf.js';
import { NOW, sampleZone } from '../unit/dns/ask.js';

export interface Target<Input = unknown> {
  readonly name: string;
  readonly inputs: fc.Arbitrary<Input>;
  /** Throws when what must hold does not. */
  check(input: Input): void;
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** Pieces of a format, whole or cut, with noise between them, as one latin1 text. */
function pieces(words: readonly string[], maxLength = 40): fc.Arbitrary<string> {
  const noise = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 12 });
  const number = fc.oneof(fc.integer().map(String), fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String), fc.constantFrom('0', '-1', '00',
    '+1', '1e9'));
  const word = fc.constantFrom(...words);
  const cut = fc.tuple(word, fc.nat({ max: 30 })).map(([text, length]) => text.slice(0, length));
  const piece = fc.oneof({ weight: 6, arbitrary: word }, { weight: 1, arbitrary: cut }, { weight: 2, arbitrary: number }, { weight: 1, arbitrary: noise });
  return fc.array(piece, { maxLength }).map((list) => list.join(''));
}

/** A text and where it is cut into chunks. */
type Cut = readonly [string, readonly number[]];

const withCuts = (texts: fc.Arbitrary<string>): fc.Arbitrary<Cut> => fc.tuple(texts, fc.array(fc.nat({ max: 400 }), { maxLength: 10 }));

function chunksOf([text, cuts]: Cut): Buffer[] {
  const bytes = Buffer.from(text, 'latin1');
  const points = [0, ...[...cuts].sort((a, b) => a - b), bytes.length].map((at) => Math.min(at, bytes.length));
  return points.slice(1).map((end, index) => bytes.subarray(points[index], end));
}

const RESP_WORDS = [
  '*1\r\n$4\r\nPING\r\n', '*2\r\n$3\r\nGET\r\n$1\r\na\r\n', '*3\r\n$3\r\nfoo\r\n:1\r\n$-1\r\n',
  '*1\r\n', '*2\r\n', '*3\r\n', '$4\r\n', '$0\r\n', '$-1\r\n', 'PING\r\n', '\r\n', '\n', '*0\r\n', '*-1\r\n', '+OK\r\n', '-ERR no\r\n', ':12\r\n', '_\r\n',
  '#t\r\n', ',1.5\r\n', '(123\r\n', '%1\r\n', '~1\r\n', '>2\r\n', '|1\r\n', '=7\r\ntxt:abc\r\n', '!3\r\nbad\r\n', '*', '$', 'SET "a b" \'c\'\r\n', '"\\x', '\\',
];

const requests: Target<Cut> = {
  name: 'resp-requests',
  inputs: withCuts(pieces(RESP_WORDS)),
  check(cut) {
    const read = (chunks: readonly Buffer[]): string => {
      const decoder = new RequestDecoder();
      return JSON.stringify(chunks.flatMap((chunk) => decoder.push(chunk)));
    };
    const whole = read([Buffer.from(cut[0], 'latin1')]);
    must(whole === read(chunksOf(cut)), 'the same bytes in other chunks mean something else');
    must(whole.length <= 200 + 60 * cut[0].length, 'more comes out than could be in it');
  },
};

const replies: Target<Cut> = {
  name: 'resp-replies',
  inputs: withCuts(pieces(RESP_WORDS)),
  check(cut) {
    const read = (chunks: readonly Buffer[]): string => {
      const decoder = new RespReplyDecoder();
      const values: unknown[] = [];
      try {
        for (const chunk of chunks) values.push(...decoder.push(chunk));
        return JSON.stringify(values);
      } catch (error) {
        if (!(error instanceof RespError)) throw error;
        return `${JSON.stringify([...values, ...error.decoded])} ${error.message}`;
      }
    };
    must(read([Buffer.from(cut[0], 'latin1')]) === read(chunksOf(cut)), 'the same bytes in other chunks mean something else');
  },
};

const hello: Target<string> = {
  name: 'hello',
  inputs: fc.oneof(
    pieces(['10.0.0.1', ',', ',', ',', '26379', 'mymaster', 'f'.repeat(40), '::1', '6379', '9007199254740993', '-5', ' ']),
    fc.array(fc.constantFrom('10.0.0.1', '26379', 'a'.repeat(40), '3', 'mymaster', '::1', '70000', '-1', '', 'x', '18446744073709551616'),
      { minLength: 7, maxLength: 12 })
      .map((fields) => fields.join(',')),
  ),
  check(text) {
    const read = parseHello(text);
    if (read === null) return;
    const again = parseHello(formatHello(read));
    must(JSON.stringify(again) === JSON.stringify(read), 'a hello that is written and read again says something else');
  },
};

const info: Target<string> = {
  name: 'info',
  inputs: pieces([
    'role:master\r\n', 'role:slave\r\n', 'run_id:', 'a'.repeat(40), '\r\n', 'slave0:ip=10.0.0.1,port=6379,state=online\r\n',
    'slave1:10.0.0.1,6379,online\r\n', 'slave',
    'ip=', 'port=', ',', 'master_host:', 'master_port:', 'master_link_status:up\r\n', 'master_link_down_since_seconds:', 'slave_priority:',
    'slave_repl_offset:',
    'db0:keys=', 'expires=', 'replica_announced:', 'master_replid:', 'sync_full:', '# Replication\r\n', 'loading:1\r\n',
  ]),
  check(text) {
    const report = parseInfo(text);
    const lines = text.split('\n').length;
    must(report.replicas.length + report.skipped.length <= lines, 'more replicas than lines');
    must(report.replicas.every(({ port }) => Number.isInteger(port)), 'a replica with a port that is none');
  },
};

const conf: Target<string> = {
  name: 'sentinel-conf',
  inputs: pieces([
    'sentinel monitor mymaster 10.0.0.1 6379 2\n', 'sentinel ', 'down-after-milliseconds ', 'mymaster ', 'known-replica ', 'known-sentinel ',
    'myid ', 'a'.repeat(40),
    'current-epoch ', 'config-epoch ', 'leader-epoch ', '10.0.0.2 ', '6379 ', '\n', '"', "'", '\\x41', '# comment\n', 'port ', 'user ',
    'requirepass ', 'include ', 'auth-pass ',
    'notification-script ', 'rename-command ', 'silent-failover-state ', 'failover-timeout ', '\r\n', '\t', 'announce-ip ', 'resolve-hostnames yes\n',
  ]),
  check(text) {
    const options = { path: 'sentinel.conf', readInclude: () => null };
    const read = loadSentinelConf(text, options);
    must(read.faults.length <= text.split('\n').length, 'more faults than lines');
    const once = rewriteConf(text, [{ key: 'sentinel myid', text: 'sentinel myid x' }], SENTINEL_KEYS);
    must(rewriteConf(once, [{ key: 'sentinel myid', text: 'sentinel myid x' }], SENTINEL_KEYS) === once, 'written twice is not written once');
    must(once.length <= 2 * text.length + 200, 'the rewritten file grows');
  },
};

const zone = sampleZone();
const gate: TransferGate = {
  key: tsigKey('key', Buffer.alloc(32, 7)),
  allow: [addressRange('192.0.2.0/24')],
  deliveries: new Deliveries(),
  whyClosed: () => null,
  clock: () => NOW,
};
const SILENCE: DnsLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const DNS_WORDS = [
  '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00', '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01', '\x05cache', '\x05redis', '\x08internal',
  '\x00', '\x00\x01\x00\x01',
  '\x00\xff\x00\x01', '\x00\x06\x00\x01', '\x00\xfc\x00\x01', '\xc0\x0c', '\xc0\x00', '\x3f', '\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00',
  '\x00\x00\xfa\x00\xff',
  '\x00\x0a\x00\x08abcdefgh', '\x04_tcp', '\x06_redis', '\x03CAC',
];

const dns: Target<string> = {
  name: 'dns',
  inputs: fc.oneof({ weight: 4, arbitrary: pieces(DNS_WORDS, 20).map((rest) => `${DNS_WORDS[0]}${rest}`) }, { weight: 1, arbitrary: pieces(DNS_WORDS, 20) }),
  check(text) {
    const message = Buffer.from(text, 'latin1');
    const thrown: unknown[] = [];
    const responder = new Responder(() => zone, SILENCE, (...words) => {
      try {
        return answerGuarded(gate, ...words);
      } catch (error) {
        thrown.push(error);
        throw error;
      }
    });
    for (const transport of ['udp', 'tcp'] as const) {
      const reply = responder.respond(message, transport, '192.0.2.1');
      if (thrown.length > 0) throw thrown[0];
      if (reply === null) continue;
      for (const each of Buffer.isBuffer(reply) ? [reply] : { [Symbol.iterator]: () => reply.messages }) isReplyTo(message, each, transport);
    }
  },
};

function isReplyTo(message: Buffer, reply: Buffer, transport: 'udp' | 'tcp'): void {
  must(reply.length >= 12 && reply.readUInt16BE(0) === message.readUInt16BE(0), 'not a reply to this message');
  must((reply.readUInt16BE(2) & 0x8000) !== 0, 'a reply that looks like a query');
  must(reply.length <= (transport === 'udp' ? 4_096 : 65_535), `a reply of ${reply.length} bytes`);
}

const yaml: Target<string> = {
  name: 'yaml',
  inputs: pieces([
    'dns:\n', '  listen: ["0.0.0.0:53"]\n', '  zone: redis.internal.\n', '  ttl: 1s\n', 'consul:\n', '  address: http://127.0.0.1:8500\n',
    'log: { format: json }\n', 'log:\n',
    '  level: info\n', 'sentinel: { config: sentinel.conf }\n', 'admin:\n', 'masters:\n', '  mymaster: { name: cache }\n', '- ', ': ', '\n', '  ',
    '&a ', '*a', '!!binary ',
    '<<: *a\n', '[', ']', '{', '}', '"', '|\n', '---\n', '\t', '? ', '? &b [*b]\n', '# x\n', 'route:\n', '  map:\n', 'hooks:\n', '0x1F', '1e400',
    '__proto__: 1\n', 'constructor: {}\n',
  ], 25),
  check(text) {
    const loaded = loadConfig({ path: 'pointsman.yaml', env: {}, read: () => text });
    if (loaded.kind === 'ok') return;
    must(loaded.faults.length > 0, 'refused without a reason');
    must(loaded.faults.every(({ message }) => message.length < 20 * text.length + 2_000), 'a reason without an end');
  },
};

/** All targets. Each is only called with its own inputs, so their kinds may differ. */
export const TARGETS: readonly Target[] = [requests, replies, hello, info, conf, dns, yaml] as unknown as readonly Target[];
