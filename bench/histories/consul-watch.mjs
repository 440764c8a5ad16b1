// What Consul's catalog and key said at each index: consul-watch.mjs BASE FILE, a JSON line for each change, by blocking queries.
import { appendFileSync } from 'node:fs';

const [base, file] = process.argv.slice(2);

async function watch(path, factsOf) {
  for (let index = 0; ;) {
    try {
      const reply = await fetch(`${base}${path}wait=60s&index=${index}`);
      const next = Number(reply.headers.get('x-consul-index'));
      const body = reply.ok ? await reply.json() : [];
      if (next !== index) appendFileSync(file, `${JSON.stringify({ at: Date.now(), index: next, ...factsOf(body) })}\n`);
      index = next < index ? 0 : next;
    } catch {
      await new Promise((done) => void setTimeout(done, 100));
    }
  }
}

await Promise.all([
  watch('/v1/health/service/cache?passing&', (entries) => ({
    kind: 'primaries', primaries: entries.map(({ Node, Service }) => `${Service.Address || Node.Address}:${Service.Port}`),
    epoch: Math.max(0, ...entries.map(({ Service }) => Number(Service.Meta.epoch))),
  })),
  watch('/v1/kv/pointsman/cache?', ([entry]) => ({ kind: 'key', value: entry === undefined ? null : JSON.parse(Buffer.from(entry.Value, 'base64')) })),
]);
