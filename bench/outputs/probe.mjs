// Runs beside the clients and notes when each thing it asks for changes: a line of JSON {at, what, says}, at = milliseconds since 1970.
// node probe.mjs <file> <vip:port> <node ip:port>… -- <agent ip>…
import { createSocket } from 'node:dgram';
import { appendFileSync } from 'node:fs';
import { connect } from 'node:net';

const [file, vip, ...rest] = process.argv.slice(2);
const nodes = rest.slice(0, rest.indexOf('--'));
const agents = rest.slice(rest.indexOf('--') + 1);
const said = new Map();
const nowMs = () => performance.timeOrigin + performance.now();
const pause = (ms) => new Promise((next) => { setTimeout(next, ms); });

function note(what, says) {
  if (said.get(what) === says) return;
  said.set(what, says);
  appendFileSync(file, `${JSON.stringify({ at: nowMs(), what, says })}\n`);
}

/** ROLE on one connection, again and again. */
function watchRole(node) {
  const [host, port] = node.split(':');
  const socket = connect({ host, port: Number(port) });
  socket.on('connect', () => socket.write('ROLE\r\n'));
  socket.on('data', (chunk) => {
    const role = /\$\d+\r\n(master|slave)\r\n/.exec(chunk.toString())?.[1];
    if (role) note(`role ${host}`, role);
    setTimeout(() => socket.write('ROLE\r\n'), 2);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => setTimeout(() => watchRole(node), 5));
}

/** `cache.redis.internal A`, by hand: the last four bytes of a positive answer's first record are the address. */
function watchDns(agent) {
  const socket = createSocket('udp4');
  const labels = ['cache', 'redis', 'internal'].flatMap((label) => [label.length, ...Buffer.from(label)]);
  const question = Buffer.from([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
  const next = () => socket.send(question, 5353, agent);
  socket.on('message', (reply) => {
    const first = question.length + 12;
    note(`dns ${agent}`, (reply[3] & 15) === 0 && reply[7] > 0 ? [...reply.subarray(first, first + 4)].join('.') : 'nothing');
    setTimeout(next, 2);
  });
  socket.on('error', () => undefined);
  next();
  setInterval(next, 200);
}

/** A new TCP connection each time; who answers says its own address. */
async function watchVip() {
  const [host, port] = vip.split(':');
  for (;;) {
    const node = await new Promise((done) => {
      const socket = connect({ host, port: Number(port) });
      const settle = (answer) => {
        clearTimeout(late);
        socket.destroy();
        done(answer);
      };
      const late = setTimeout(() => settle(null), 20);
      socket.on('connect', () => socket.write('CONFIG GET replica-announce-ip\r\n'));
      socket.on('data', (chunk) => settle(/replica-announce-ip\r\n\$\d+\r\n([^\r]*)/.exec(chunk.toString())?.[1] ?? null));
      socket.on('error', () => settle(null));
    });
    if (node !== null) note('vip', node);
    await pause(1);
  }
}

for (const node of nodes) watchRole(node);
for (const agent of agents) watchDns(agent);
await watchVip();
