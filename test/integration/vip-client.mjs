// A client that knows nothing but addresses: connects to each of them all the time, writes, and notes whom it reached.
// node vip-client.mjs <file> <host:port>…; a line of JSON per attempt: {at, to, node, ms} or {at, to, error, ms}.
import { appendFileSync } from 'node:fs';
import { connect } from 'node:net';

const PATIENCE_MS = 250;
const PAUSE_MS = 4;
const [file, ...targets] = process.argv.slice(2);
const COMMANDS = 'CONFIG GET replica-announce-ip\r\nINCR written\r\n';

function attempt(host, port) {
  return new Promise((done) => {
    let text = '';
    const socket = connect({ host, port });
    const settle = (outcome) => {
      clearTimeout(late);
      socket.destroy();
      done(outcome);
    };
    const late = setTimeout(() => settle({ error: 'silence' }), PATIENCE_MS);
    socket.on('connect', () => socket.write(COMMANDS));
    socket.on('error', (fault) => settle({ error: fault.code }));
    socket.on('close', () => settle({ error: 'closed' }));
    socket.on('data', (chunk) => {
      text += chunk;
      const found = /^\*2\r\n\$\d+\r\nreplica-announce-ip\r\n\$\d+\r\n([^\r]*)\r\n([:-][^\r]*)\r\n$/.exec(text);
      if (found) settle(found[2].startsWith(':') ? { node: found[1] } : { error: found[2].slice(1, 20) });
    });
  });
}

async function hammer(to) {
  const split = to.lastIndexOf(':');
  const [host, port] = [to.slice(0, split).replace(/[[\]]/g, ''), Number(to.slice(split + 1))];
  for (;;) {
    const startMs = performance.now();
    const outcome = await attempt(host, port);
    appendFileSync(file, `${JSON.stringify({ at: Date.now(), to, ...outcome, ms: Math.round(performance.now() - startMs) })}\n`);
    await new Promise((next) => { setTimeout(next, PAUSE_MS); });
  }
}

await Promise.all(targets.map(hammer));
