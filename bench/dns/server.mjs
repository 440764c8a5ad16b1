// One server for the DNS bench, in a process of its own: server.mjs echo|dns2|ours HOST PORT [MASTERS] [WORKERS]
// Prints `ready` when it answers. `swap COUNT` on stdin changes the zone so often, a change each 10 ms, and prints `swapped`.
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';

const [kind, host, port, masters = '1', workers = '0'] = process.argv.slice(2);
const address = { host, port: Number(port) };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const ready = () => process.stdout.write('ready\n');

// What no server in this runtime can beat: a datagram in, one of an answer's size out, nothing looked at.
function echo() {
  const family = host.includes(':') ? 6 : 4;
  const socket = createSocket({ type: `udp${family}`, lookup: (name, _options, done) => done(null, name, family), recvBufferSize: 4 << 20 });
  const record = Buffer.from('c00c00010001000000010004', 'hex');
  socket.on('message', (message, sender) => {
    const out = Buffer.concat([message, record, Buffer.from([10, 0, 0, 1])]);
    out[2] |= 0x84;
    out[7] = 1;
    socket.send(out, 0, out.length, sender.port, sender.address);
  });
  socket.bind(address.port, address.host, ready);
}

async function dns2Server() {
  const { default: dns2 } = await import('dns2');
  const server = dns2.createServer({
    udp: true,
    handle(request, send) {
      const response = dns2.Packet.createResponseFromRequest(request);
      const [{ name }] = request.questions;
      response.answers.push({ name, type: dns2.Packet.TYPE.A, class: dns2.Packet.CLASS.IN, ttl: 1, address: '10.0.0.1' });
      send(response);
    },
  });
  await server.listen({ udp: { address: address.host, port: address.port } });
  ready();
}

async function ours() {
  const { startDnsListeners } = await import('../../dist/dns/listeners.js');
  const { WorkerPool } = await import('../../dist/dns/workers/worker-pool.js');
  const { buildZone, updateZone } = await import('../../dist/dns/zone.js');
  const settings = {
    origin: 'redis.internal.', ttlSeconds: 1, negativeTtlSeconds: 1, ns: [{ name: 'ns1.redis.internal.', addresses: ['10.0.0.53'] }],
    labels: new Map(), whenIsolated: 'serve-last', allowLoopback: false, replicaFallback: true,
  };
  const routeOf = (index, configEpoch) => {
    const node = (last) => ({ host: `10.${index >> 8}.${index & 255}.${last}`, port: 6379 });
    const [first, second] = configEpoch % 2 === 0 ? [2, 1] : [1, 2];
    return {
      master: `m${index}`, primary: node(first), replicas: [second, 3].map((last) => ({ address: node(last), healthy: true })),
      configEpoch, order: 2 * configEpoch, phase: 'steady', trusted: true, confirmed: true, role: 'observer', previous: null, since: 0,
    };
  };
  const count = Number(masters);
  let zone = buildZone(settings, Array.from({ length: count }, (_, index) => `m${index}`), 0, Date.now());
  for (let index = 0; index < count; index++) zone = updateZone(zone, routeOf(index, 1), Date.now());
  const pool = workers === '0' ? null : new WorkerPool(Number(workers), () => ({ zone, service: { gate: null, rateLimit: null } }), quiet);
  await pool?.start();
  await startDnsListeners({ listen: [host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`], zone: () => zone, log: quiet, workers: pool });
  ready();
  let epoch = 1;
  createInterface({ input: process.stdin }).on('line', async (line) => {
    for (let left = Number(line.replace('swap ', '')); left > 0; left--) {
      epoch += 1;
      zone = updateZone(zone, routeOf(0, epoch), Date.now());
      await pool?.changed('m0');
      await new Promise((done) => void setTimeout(done, 10));
    }
    process.stdout.write('swapped\n');
  });
}

await { echo, dns2: dns2Server, ours }[kind]();
