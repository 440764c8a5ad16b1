// Stands before a Consul, passes all on and notes each write (self-tests, which change nothing, apart): a line of JSON {at, path, from, body}; and
// whenever the ModifyIndexes of what belongs to the masters change: {at, indexes}.
// node consul-recorder.mjs FILE LISTEN_IP PORT CONSUL_URL MASTER…
import { appendFileSync } from 'node:fs';
import { createServer, request } from 'node:http';

const [file, ip, port, base, ...masters] = process.argv.slice(2);
const note = (line) => appendFileSync(file, `${JSON.stringify({ at: Date.now(), ...line })}\n`);

createServer(async (asked, reply) => {
  const body = Buffer.concat(await asked.toArray());
  if (asked.method !== 'GET' && !body.includes('.never')) note({ path: asked.url, from: asked.socket.remoteAddress, body: body.toString() });
  const onward = request(`${base}${asked.url}`, { method: asked.method, headers: asked.headers }, (answer) => {
    reply.writeHead(answer.statusCode, answer.headers);
    answer.pipe(reply);
  });
  onward.on('error', () => asked.socket.destroy());
  reply.on('close', () => onward.destroy());
  onward.end(body);
}).listen(Number(port), ip);

let last = '';
for (;;) {
  const paths = masters.flatMap((master) => [`health/service/${master}`, `health/service/${master}-replica`, `kv/pointsman/${master}`]);
  const texts = await Promise.all(paths.map((path) => fetch(`${base}/v1/${path}`).then((answer) => answer.text()).catch(() => null)));
  const indexes = texts.map((text) => (text?.match(/"ModifyIndex":\d+/g) ?? []).map((each) => each.slice(14)).join(' ')).join(' | ');
  if (!texts.includes(null) && indexes !== last) note({ indexes: (last = indexes) });
  await new Promise((next) => { setTimeout(next, 1_000); });
}
