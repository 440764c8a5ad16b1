// Sends rubbish to a DNS port as fast as it can: flood.mjs udp|tcp PORT SECONDS. Half of it random bytes, half queries with some bytes
// turned; by TCP each stream is some of them behind sound or random lengths, left open, ended or reset. Prints how many it sent.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';

const [transport, port, seconds] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const STREAMS = 32;
const below = (limit) => Math.floor(Math.random() * limit);
const sound = Buffer.from('12340100000100000000000107726565697330380672656469730474657374000001000100002904d000000000000000', 'hex');
const pool = Array.from({ length: 2_000 }, (_, index) => {
  if (index % 2 === 0) return randomBytes(1 + below(300));
  const bytes = Buffer.from(sound);
  for (let turn = 0; turn < 3; turn++) bytes[below(bytes.length)] = below(256);
  return bytes;
});
const endMs = performance.now() + seconds * 1_000;
let sent = 0;

function byUdp() {
  const socket = createSocket({ type: 'udp4', lookup: (name, _options, done) => done(null, name, 4) });
  socket.on('message', () => {}).on('error', () => {});
  const burst = () => {
    for (let index = 0; index < 64; index++) socket.send(pool[sent++ % pool.length], port, '127.0.0.1');
    if (performance.now() < endMs) setImmediate(burst);
    else socket.close(() => process.stdout.write(`${sent}\n`));
  };
  socket.bind(0, burst);
}

async function byTcp() {
  await Promise.all(Array.from({ length: STREAMS }, async () => {
    while (performance.now() < endMs) {
      const stream = connect(port, '127.0.0.1').on('error', () => {});
      stream.resume();
      await Promise.race([once(stream, 'connect'), once(stream, 'close')]);
      for (let index = below(20); index >= 0; index--) {
        const message = pool[below(pool.length)];
        const length = Buffer.alloc(2);
        length.writeUInt16BE(below(4) === 0 ? below(65_536) : message.length);
        stream.write(Buffer.concat([length, message]));
      }
      const [end, patience] = [below(3), below(20)];
      if (end === 0) stream.end();
      else if (end === 1) stream.resetAndDestroy();
      else await new Promise((done) => void setTimeout(done, patience));
      stream.destroy();
      sent += 1;
    }
  }));
  process.stdout.write(`${sent}\n`);
}

await (transport === 'tcp' ? byTcp() : byUdp());
