// Runs beside the clients and notes when each thing it asks for changes: a line of JSON {at, what, says}, at = milliseconds since 1970.
// node probe.mjs FILE '{"nodes": ["ip:port"], "vips": [["vip4", "ip", port]], "names": [["dns 10.0.0.1", "ip", port, "name"]]}'
import { createSocket } from 'node:dgram';
import { appendFileSync } from 'node:fs';
import { connect } from 'node:net';

const [file, text] = process.argv.slice(2);
const { nodes, vips, names } = JSON.parse(text);
const LOST_MS = 200;
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

/** `NAME A`, by hand: the last four bytes of a positive answer's first record are the address. One question at a time. */
function watchName(what, server, port, name) {
  const socket = createSocket('udp4');
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const question = Buffer.from([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
  let timer;
  const next = () => {
    clearTimeout(timer);
    socket.send(question, port, server);
    timer = setTimeout(next, LOST_MS);
  };
  socket.on('message', (reply) => {
    const first = question.length + 12;
    note(what, (reply[3] & 15) === 0 && reply[7] > 0 ? [...reply.subarray(first, first + 4)].join('.') : 'nothing');
    clearTimeout(timer);
    timer = setTimeout(next, 2);
  });
  socket.on('error', () => undefined);
  next();
}

/** A new TCP connection each time; who answers says its own address. */
async function watchVip(what, host, port) {
  for (;;) {
    const node = await new Promise((done) => {
      const socket = connect({ host, port });
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
    if (node !== null) note(what, node);
    await pause(1);
  }
}

for (const node of nodes) watchRole(node);
for (const name of names) watchName(...name);
await Promise.all(vips.map((vip) => watchVip(...vip)));
