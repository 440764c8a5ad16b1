// What Consul itself needs, without us: the time from PUT /v1/txn of a switch (key and two services with their checks, as we write them) to
// the new address in the DNS of each server. A line of JSON per switch: {ms: {server: milliseconds}, ackMs}.
// node consul-alone.mjs COUNT '{"writers": ["http://ip:port"], "servers": [["name", "ip", port]]}'
import { createSocket } from 'node:dgram';
import { Agent, request } from 'node:http';

const [count, text] = process.argv.slice(2);
const { writers, servers } = JSON.parse(text);
const LIMIT_MS = 2_000;
const ADDRESSES = ['10.99.0.1', '10.99.0.2'];
const pause = (ms) => new Promise((next) => { setTimeout(next, ms); });
const agent = new Agent({ keepAlive: true });

function put(base, operations) {
  return new Promise((done, fail) => {
    const call = request(`${base}/v1/txn`, { method: 'PUT', agent }, (reply) => {
      reply.resume();
      reply.on('end', () => (reply.statusCode === 200 ? done() : fail(new Error(`transaction: ${reply.statusCode}`))));
    });
    call.on('error', fail);
    call.end(JSON.stringify(operations));
  });
}

function operationsTo(primary, isFirst, number) {
  const nodes = ADDRESSES.flatMap((address, at) => {
    const [node, id] = [`alone-${at}`, `alone-${at}`];
    const isPrimary = address === primary;
    const service = { ID: id, Service: 'alone', Tags: [isPrimary ? 'master' : 'replica'], Address: address, Port: 6379, Meta: { epoch: String(number) } };
    const status = isPrimary ? 'passing' : 'critical';
    return [
      ...(isFirst ? [{ Node: { Verb: 'set', Node: { Node: node, Address: address } } }] : []),
      { Service: { Verb: 'set', Node: node, Service: service } },
      { Check: { Verb: 'set', Check: { Node: node, CheckID: id, Name: 'role', Status: status, ServiceID: id, ServiceName: 'alone' } } },
    ];
  });
  return [{ KV: { Verb: 'set', Key: 'alone', Value: Buffer.from(`${number}`).toString('base64') } }, ...nodes];
}

/** Resolves with the time when this server's answer is `wanted`. */
function seenAt(server, port, wanted) {
  const labels = ['alone', 'service', 'consul'].flatMap((label) => [label.length, ...Buffer.from(label)]);
  const question = Buffer.from([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
  return new Promise((done) => {
    const socket = createSocket('udp4');
    let timer;
    const end = (at) => {
      clearTimeout(timer);
      clearTimeout(limit);
      socket.close();
      done(at);
    };
    const limit = setTimeout(() => end(Infinity), LIMIT_MS);
    const next = () => {
      clearTimeout(timer);
      socket.send(question, port, server);
      timer = setTimeout(next, 200);
    };
    socket.on('message', (reply) => {
      const first = question.length + 12;
      if (reply[7] > 0 && [...reply.subarray(first, first + 4)].join('.') === wanted) end(performance.now());
      else {
        clearTimeout(timer);
        timer = setTimeout(next, 1);
      }
    });
    next();
  });
}

await put(writers[0], operationsTo(ADDRESSES[0], true, 0));
await Promise.all(servers.map(([, ip, port]) => seenAt(ip, port, ADDRESSES[0])));
for (let number = 1; number <= Number(count); number++) {
  const wanted = ADDRESSES[number % 2];
  await pause(50 + Math.random() * 100);
  const startMs = performance.now();
  const write = put(writers[number % writers.length], operationsTo(wanted, false, number)).then(() => performance.now());
  const seen = await Promise.all(servers.map(([, ip, port]) => seenAt(ip, port, wanted)));
  const ackMs = (await write) - startMs;
  process.stdout.write(`${JSON.stringify({ ackMs, ms: Object.fromEntries(servers.map(([name], at) => [name, seen[at] - startMs])) })}\n`);
}
agent.destroy();
