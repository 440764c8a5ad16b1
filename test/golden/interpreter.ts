/**
 * The command language of golden conversations: a line is a command, its words are names, numbers and `key=value`.
 *
 * A file is a head comment and blocks of commands, `----`, and what they printed. The commands are the keys of COMMANDS below;
 * each says in a line what it does.
 */
import { must } from '../../src/assert.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { formatHello } from '../../src/sentinel/wire/hello.js';
import { error, simple } from '../../src/sentinel/wire/resp-value.js';
import { addressOf, MASTER_NAME, runIdOf } from './names.js';
import { replyText, Rig, TOPICS } from './rig.js';

/** Words of a command line: positional ones, and `key=value`. */
interface Words {
  readonly plain: readonly string[];
  readonly named: ReadonlyMap<string, string>;
}

type Command = (rig: Rig, words: Words, line: string) => void;

const word = ({ plain }: Words, index: number): string => must(plain[index], `word ${index + 1} is missing`);
const number = ({ named }: Words, key: string, fallback: number): number => Number(named.get(key) ?? fallback);
const duration = (text: string): number => {
  if (!/^-?\d+$/.test(text)) throw new Error(`${text} is no number of milliseconds`);
  return Number(text);
};

/** Words of `add-sentinels` for settings of ours. */
const EXTRA_STATEMENTS: Readonly<Record<string, string>> = {
  'silent-timeout': 'silent-failover-timeout',
  'allow-mixed': 'silent-failover-allow-mixed',
  coordinated: 'coordinated-failover',
  'max-pause': 'coordinated-max-pause',
};

/** Sentinels that have met, unless `met=no`; the first seconds of getting to know each other are not shown. */
function addSentinels(rig: Rig, words: Words): void {
  const count = Number(word(words, 0));
  const replicas = number(words, 'replicas', 2);
  const isMet = words.named.get('met') !== 'no';
  rig.addNode('m1', null);
  for (let index = 1; index <= replicas; index++) rig.addNode(`r${index}`, 'm1');
  rig.run(2_000);
  const names = Array.from({ length: count }, (_, index) => `s${index + 1}`);
  for (const name of names) {
    const lines = [
      'port 26379',
      `sentinel myid ${runIdOf(name)}`,
      `sentinel monitor ${MASTER_NAME} 10.1.0.1 6379 ${number(words, 'quorum', Math.floor(count / 2) + 1)}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${number(words, 'down-after', 5_000)}`,
      `sentinel failover-timeout ${MASTER_NAME} ${number(words, 'failover-timeout', 60_000)}`,
      `sentinel parallel-syncs ${MASTER_NAME} ${number(words, 'parallel-syncs', 1)}`,
    ];
    const rebootMs = words.named.get('reboot-down-after');
    if (rebootMs !== undefined) lines.push(`sentinel master-reboot-down-after-period ${MASTER_NAME} ${rebootMs}`);
    for (const [key, statement] of Object.entries(EXTRA_STATEMENTS)) {
      const value = words.named.get(key);
      if (value !== undefined) lines.push(`sentinel ${statement} ${MASTER_NAME} ${value}`);
    }
    const others = names.filter((other) => isMet && other !== name);
    for (const other of others) lines.push(`sentinel known-sentinel ${MASTER_NAME} ${addressOf(other).host} 26379 ${runIdOf(other)}`);
    for (let index = 1; isMet && index <= replicas; index++) {
      lines.push(`sentinel known-replica ${MASTER_NAME} ${addressOf(`r${index}`).host} 6379`);
    }
    rig.addSentinel(name, lines.map((line) => `${line}\n`).join(''), (words.named.get('stock') ?? '').split(',').includes(name));
  }
  for (const host of rig.hosts.values()) host.start();
  if (!isMet) return;
  rig.run(5_000);
  rig.output.length = 0;
  rig.startClock();
}

function silence(rig: Rig, words: Words, isSilent: boolean): void {
  const machine = rig.machine(word(words, 0));
  const from = words.named.get('from');
  if (from === undefined) {
    if (isSilent) machine.pause();
    else machine.resume();
    return;
  }
  for (const name of from.split(',')) {
    if (isSilent) rig.network.cut(machine, rig.machine(name));
    else rig.network.mend(machine, rig.machine(name));
  }
}

function cut(rig: Rig, words: Words, isCut: boolean): void {
  const [left, right] = [rig.machine(word(words, 0)), rig.machine(word(words, 1))];
  for (const [from, to] of [[left, right], [right, left]] as const) {
    if (isCut) rig.network.cut(from, to);
    else rig.network.mend(from, to);
  }
}

function kill(rig: Rig, words: Words): void {
  const name = word(words, 0);
  const withMachine = words.plain[1] === 'machine';
  if (rig.hosts.has(name)) rig.host(name).kill(withMachine);
  else rig.node(name).kill(withMachine);
}

function restart(rig: Rig, words: Words): void {
  const name = word(words, 0);
  if (rig.hosts.has(name)) rig.host(name).start();
  else rig.node(name).start(words.plain[1] !== 'empty');
}

/** Lets time pass until a line with the text was printed. */
function until(rig: Rig, words: Words, line: string): void {
  const text = words.plain.join(' ');
  const from = rig.output.length;
  const deadlineMs = rig.clock.nowMs + number(words, 'max', 60_000);
  while (rig.clock.nowMs < deadlineMs) {
    rig.run(number(words, 'step', 10));
    if (rig.output.slice(from).some((printed) => printed.includes(text))) return;
  }
  throw new Error([`nothing printed for: ${line}`, ...rig.output].join('\n'));
}

function hello(rig: Rig, words: Words): void {
  const named = (key: string): string => must(words.named.get(key), `hello needs ${key}=`);
  const from = named('from');
  const payload = formatHello({
    sentinel: addressOf(words.named.get('at') ?? from),
    runId: runIdOf(from),
    currentEpoch: number(words, 'epoch', 0),
    masterName: MASTER_NAME,
    master: addressOf(words.named.get('master') ?? 'm1'),
    configEpoch: number(words, 'config-epoch', 0),
    silent: words.named.has('target') ? { doneEpoch: number(words, 'done-epoch', 0), target: addressOf(named('target')) } : null,
  });
  rig.host(word(words, 0)).input({ kind: 'hello', payload });
}

/** Names of nodes in it stand for `ip:port`. */
function command(rig: Rig, name: string, words: readonly string[]): void {
  const argv = words.map((text) => (/^[mr]\d$/.test(text) ? formatAddress(addressOf(text)) : text));
  rig.host(name).command(argv, (value) => rig.print(name, `replies ${replyText(value)}`));
}

/** What a canned reply says: `+text`, `-text`. */
function setReply(rig: Rig, words: Words): void {
  const node = rig.node(word(words, 0));
  const text = words.plain.slice(2).join(' ');
  if (text === 'normal') node.canned.delete(word(words, 1));
  else node.canned.set(word(words, 1), text.startsWith('-') ? error(text.slice(1)) : simple(text.replace(/^\+/, '')));
}

/** A client of its own writes `count` values. */
function write(rig: Rig, words: Words): void {
  tell(rig, word(words, 0), Array.from({ length: Number(words.plain[1] ?? 1) }, () => ['SET', String(rig.nextValue++)]));
}

/** A client of its own sends commands to a node. */
function tell(rig: Rig, node: string, commands: readonly (readonly string[])[]): void {
  const { host, port } = addressOf(node);
  const client = rig.network.machines.find((machine) => machine.name === 'c1') ?? rig.network.addMachine('c1', '10.2.0.1', 1);
  const socket = rig.network.connect(client, host, port, {
    up: () => {
      for (const argv of commands) socket.send({ kind: 'request', argv });
    },
    receive: (message) => {
      if (message.kind === 'reply' && message.value.kind === 'error') rig.print(node, `refuses the write: ${message.value.text}`);
    },
    closed: () => undefined,
  });
  rig.run(10);
}

function setNode(rig: Rig, words: Words): void {
  const node = rig.node(word(words, 0));
  node.priority = number(words, 'priority', node.priority);
  node.log.offset = number(words, 'offset', node.log.offset);
  node.runId = words.named.get('runid')?.repeat(40) ?? node.runId;
  if (words.named.has('writable')) node.isReadOnly = words.named.get('writable') !== 'yes';
}

function showData(rig: Rig, words: Words): void {
  for (const name of words.plain) {
    const node = rig.node(name);
    const traits = `${node.isReadOnly ? '' : ', writable'}${node.isPaused ? ', paused' : ''}`;
    rig.print(name, `holds ${node.log.values.join(' ') || 'nothing'}${traits}`);
  }
}

/** Every field of SILENT-FAILOVER status that says something to a reader. */
function showSilent(rig: Rig, words: Words): void {
  const name = word(words, 0);
  rig.host(name).command(['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, 'status'], (value) => {
    const texts = value.kind === 'array' ? value.items.map(replyText) : [replyText(value)];
    const pairs = texts.flatMap((text, index) => (index % 2 === 0 ? [[text, texts[index + 1] ?? ''] as const] : []));
    const told = pairs.filter(([key, text]) => text !== '' && text !== '0' && !/-ms$|^rank$|^original-|^target-/.test(key));
    rig.print(name, `silent ${told.map(([key, text]) => `${key}=${text}`).join(' ')}`);
  });
}

function stall(rig: Rig, words: Words): void {
  const machine = rig.machine(word(words, 0));
  machine.pause();
  rig.run(duration(word(words, 1)));
  machine.resume();
}

function setDisk(rig: Rig, words: Words): void {
  const { disk } = rig.host(word(words, 0));
  disk.isFailing = words.plain[1] === 'failing';
  disk.slowMs = number(words, 'slow', 0);
}

function showState(rig: Rig, words: Words): void {
  const { state, core } = rig.host(word(words, 0));
  const text = state === null ? 'dead' : core.describe(state);
  for (const line of text.split('\n')) rig.print(word(words, 0), line);
}

function showRoute(rig: Rig, words: Words): void {
  const { state, core, name } = rig.host(word(words, 0));
  const route = state === null ? null : core.projectRoute(state, MASTER_NAME);
  if (route === null) return rig.print(name, 'route none');
  const at = (address: { host: string; port: number } | null): string => (address === null ? 'none' : `${address.host}:${address.port}`);
  const replicas = route.replicas.map(({ address, healthy }) => `${at(address)}${healthy ? '' : '(ill)'}`).join(',');
  const doubts = `${route.trusted ? '' : ' untrusted'}${route.confirmed ? '' : ' unconfirmed'}`;
  const facts = `epoch=${route.configEpoch} order=${route.order} ${route.phase} ${route.role}${doubts}`;
  rig.print(name, `route ${at(route.primary)} replicas=${replicas} ${facts}`);
}

function show(rig: Rig, words: Words, isShown: boolean): void {
  for (const topic of words.plain) {
    const known = must(TOPICS.find((one) => one === topic), `${topic} is no topic: ${TOPICS.join(' ')}`);
    if (isShown) rig.shown.add(known);
    else rig.shown.delete(known);
  }
}

const COMMANDS: Readonly<Record<string, Command>> = {
  /** `add-sentinels 3 replicas=2 quorum=2 down-after=5000 failover-timeout=60000 parallel-syncs=1 met=no stock=s3 allow-mixed=yes` */
  'add-sentinels': addSentinels,
  /** `silence m1` stops the process; `silence m1 from=s1,s2` only keeps its answers from them. */
  silence: (rig, words) => silence(rig, words, true),
  answer: (rig, words) => silence(rig, words, false),
  /** `cut s1 s2`: nothing gets through, both ways. */
  cut: (rig, words) => cut(rig, words, true),
  mend: (rig, words) => cut(rig, words, false),
  /** `kill s1`, `kill m1 machine` (power loss), `restart m1 empty`. */
  kill,
  restart,
  /** `tick 5000`: milliseconds pass. `skip 5000`: the same, unseen. */
  tick: (rig, words) => rig.run(duration(word(words, 0))),
  skip: (rig, words) => {
    const seen = rig.output.length;
    rig.run(duration(word(words, 0)));
    rig.output.length = seen;
  },
  /** `until +switch-master max=60000 step=10`. */
  until,
  /** `command s1 SENTINEL MASTER mymaster`. */
  command: (rig, { plain }) => command(rig, must(plain[0], 'command needs a sentinel'), plain.slice(1)),
  /** `ask s1 m1 epoch=5 candidate=s2`: is-master-down-by-addr by somebody outside. */
  ask: (rig, words) => {
    const { host, port } = addressOf(word(words, 1));
    const candidate = words.named.get('candidate');
    const argv = ['SENTINEL', 'is-master-down-by-addr', host, String(port), String(number(words, 'epoch', 0))];
    command(rig, word(words, 0), [...argv, candidate === undefined ? '*' : runIdOf(candidate)]);
  },
  /** `hello s1 from=s2 epoch=3 master=r1 config-epoch=3 at=s9`, and `done-epoch=4 target=r1` for one of 11 fields. */
  hello,
  /** `reply r1 PING -LOADING …`, `reply r1 PING normal`. */
  reply: setReply,
  /** `redis r1 follow m1`, `redis r1 lead`: by an operator's hand. */
  redis: (rig, words) => rig.node(word(words, 0)).follow(words.plain[1] === 'lead' ? null : addressOf(word(words, 2))),
  /** `add-node r8`: a master of its own that no sentinel knows. `write m1 3`: three writes. */
  /** CLIENT KILL TYPE, one kind after the other. */
  'kill-clients': (rig, { plain: [node = '', ...kinds] }) => tell(rig, node, kinds.map((kind) => ['CLIENT', 'KILL', 'TYPE', kind])),
  'add-node': (rig, words) => rig.addNode(word(words, 0), null),
  write,
  /** `data m1 r1`: what they hold. `silent s1`: its SILENT-FAILOVER status. */
  data: showData,
  silent: showSilent,
  /** `set r1 writable=yes priority=10 offset=500 runid=a`. */
  set: setNode,
  /** `clock s1 5000`: its clock jumps, or back with -5000. `stall s1 3000`: the process stops for so long. */
  clock: (rig, words) => {
    rig.host(word(words, 0)).clockOffsetMs += duration(word(words, 1));
  },
  stall,
  /** `disk s1 slow=500`, `disk s1 failing`, `disk s1 good`. */
  disk: setDisk,
  /** `state s1`, `route s1`. */
  state: showState,
  route: showRoute,
  /** `show hello saved log ping info sync connect debug`. */
  show: (rig, words) => show(rig, words, true),
  hide: (rig, words) => show(rig, words, false),
};

/** Runs one command line. */
export function execute(rig: Rig, line: string): void {
  const [name = '', ...rest] = line.trim().split(/\s+/);
  const run = must(COMMANDS[name], `unknown command: ${line}`);
  const isNamed = (text: string): boolean => /^[a-z-]+=/.test(text);
  const named = new Map(rest.filter(isNamed).map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]));
  run(rig, { plain: rest.filter((text) => !isNamed(text)), named }, line);
}

/** Runs a whole conversation and returns it with what it prints now. */
export function converse(text: string): string {
  const lines = text.replace(/\s+$/, '').split('\n');
  const firstBlock = lines.findIndex((line) => line !== '' && !line.startsWith('#'));
  const head = lines.slice(0, firstBlock).join('\n').trimEnd();
  const blocks = lines.slice(firstBlock).join('\n').split(/\n\n+/);
  const rig = new Rig();
  const result = blocks.map((block) => {
    const commands = block.split(/^----$/m)[0]?.split('\n').filter((line) => line.trim() !== '') ?? [];
    rig.output.length = 0;
    for (const line of commands) if (!line.startsWith('#')) execute(rig, line);
    return [...commands, '----', ...rig.output].join('\n');
  });
  return `${[head, ...result].join('\n\n')}\n`;
}
