// client-reconfig-script with real bash scripts: what is called when, with which words, and what never runs.
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ClientReconfigScript } from '../../../src/publishers/hooks/client-reconfig-script.js';
import type { ClientReconfigScriptOptions } from '../../../src/publishers/hooks/client-reconfig-script.js';
import { Slots } from '../../../src/publishers/hooks/slots.js';
import { Reconciler } from '../../../src/publishers/reconciler.js';
import { parseAddress } from '../../../src/sentinel/wire/address.js';
import { publisherCompliance } from './compliance.js';
import { A, B, C, captureLog, routeOf, waitFor } from './routes.js';

/** A folder with a script that notes its calls in `calls` and then does what its other files say. */
class Stage {
  readonly failures: (readonly [string, number, number])[] = [];
  readonly lines: string[] = [];

  private constructor(readonly folder: string) {}

  static async create(body = 'exit 0'): Promise<Stage> {
    const stage = new Stage(await mkdtemp(join(tmpdir(), 'pointsman-hook-')));
    await stage.script(body);
    return stage;
  }

  get path(): string {
    return join(this.folder, 'reconfig.sh');
  }

  /** Replaced by rename: a script that runs right now keeps its text. */
  async script(body: string): Promise<void> {
    const env = 'env | grep ^POINTSMAN_ | sort';
    await writeFile(`${this.path}.new`, `#!/bin/bash\ncd "${this.folder}"\necho "$@" >> calls\n${env} > env\n${body}\n`);
    await chmod(`${this.path}.new`, 0o755);
    await rename(`${this.path}.new`, this.path);
  }

  hook(more: Partial<ClientReconfigScriptOptions> = {}): ClientReconfigScript {
    const { log, lines } = captureLog();
    Object.defineProperty(this, 'lines', { value: lines, configurable: true });
    return new ClientReconfigScript({
      scriptOf: () => this.path, log, onFailure: (...failure) => this.failures.push(failure), maxRuntimeMs: () => 60_000,
      stateFile: join(this.folder, 'state.json'), ...more,
    });
  }

  async calls(): Promise<string[]> {
    return (await this.text('calls')).split('\n').filter((line) => line !== '');
  }

  text(name: string): Promise<string> {
    return readFile(join(this.folder, name), 'utf8').catch(() => '');
  }
}

const signal = (): AbortSignal => new AbortController().signal;
const toB = routeOf({ primary: B, previous: A, configEpoch: 6, phase: 'failover', role: 'leader' });
const CALL_AB = 'cache leader start 10.0.0.1 6379 10.0.0.2 6380';

let stage: Stage;
beforeEach(async () => { stage = await Stage.create(); });
afterEach(() => rm(stage.folder, { recursive: true, force: true }));

publisherCompliance('client-reconfig-script', async () => {
  const place = await Stage.create('while [ -e stalled ]; do sleep 0.02; done');
  return {
    publisher: place.hook(),
    seen: async (master) => {
      const last = (await place.calls()).filter((line) => line.startsWith(`${master} `)).at(-1)?.split(' ');
      return last === undefined ? null : parseAddress(`${last[5]?.includes(':') ? `[${last[5]}]` : last[5]}:${last[6]}`);
    },
    writes: async () => (await place.calls()).length,
    stall: async () => {
      await writeFile(join(place.folder, 'stalled'), '');
      return () => rm(join(place.folder, 'stalled'));
    },
    restart: () => Promise.resolve(place.hook()),
    dispose: () => rm(place.folder, { recursive: true, force: true }),
  };
});

describe('what is called', () => {
  test('nothing at a plain start; then stock\'s seven arguments and our environment', async () => {
    const hook = stage.hook();
    expect((await hook.apply(routeOf(), signal())).detail).toBe('nothing has moved yet');
    expect(await stage.calls()).toEqual([]);
    expect((await hook.apply(toB, signal())).detail).toBe('script moved clients to 10.0.0.2:6380');
    expect(await stage.calls()).toEqual([CALL_AB]);
    expect((await stage.text('env')).trim().split('\n')).toEqual([
      'POINTSMAN_EPOCH=6', 'POINTSMAN_FROM=10.0.0.1:6379', 'POINTSMAN_MASTER=cache', 'POINTSMAN_PHASE=failover', 'POINTSMAN_PLANNED=0',
      'POINTSMAN_REASON=failover', 'POINTSMAN_ROLE=leader', 'POINTSMAN_TO=10.0.0.2:6380',
    ]);
    await hook.close();
  });

  test('from is the last target that ended well, not the previous primary', async () => {
    const hook = stage.hook();
    await hook.apply(routeOf(), signal());
    await stage.script('exit 1');
    await expect(hook.apply(toB, signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    await stage.script('exit 0');
    await hook.apply(routeOf({ primary: C, previous: B, configEpoch: 7 }), signal());
    expect(await stage.calls()).toEqual([CALL_AB, 'cache observer start 10.0.0.1 6379 2001:db8::3 6381']);
  });

  test('back to where it was after a call that did not end well: undone from its target', async () => {
    const hook = stage.hook();
    await hook.apply(routeOf(), signal());
    await stage.script('exit 1');
    await expect(hook.apply(toB, signal())).rejects.toThrow();
    await stage.script('exit 0');
    await hook.apply(routeOf({ previous: B, configEpoch: 7 }), signal());
    expect((await stage.calls()).at(-1)).toBe('cache observer start 10.0.0.2 6380 10.0.0.1 6379');
    await hook.apply(routeOf({ previous: B, configEpoch: 8 }), signal());
    expect(await stage.calls()).toHaveLength(2);
  });

  test('a switch missed while the agent was down is made up for', async () => {
    const before = stage.hook();
    await before.apply(routeOf(), signal());
    await before.close();
    const after = stage.hook();
    await after.apply(routeOf({ primary: B, configEpoch: 6 }), signal());
    expect(await stage.calls()).toEqual(['cache observer start 10.0.0.1 6379 10.0.0.2 6380']);
  });

  test('a broken state file is a start without one', async () => {
    await writeFile(join(stage.folder, 'state.json'), '{"cache": [1');
    const hook = stage.hook();
    await hook.apply(routeOf(), signal());
    expect(stage.lines.join('')).toContain('unreadable');
    await hook.apply(toB, signal());
    expect(await stage.calls()).toEqual([CALL_AB]);
  });

  test('an unwritable state file does not stop the hook', async () => {
    const hook = stage.hook({ stateFile: join(stage.path, 'below-a-file') });
    await hook.apply(toB, signal());
    expect(await stage.calls()).toEqual([CALL_AB]);
    expect(stage.lines.join('')).toContain('cannot be written');
  });

  test('no script, no call; a script configured later starts from where clients are', async () => {
    let path: string | null = null;
    const hook = stage.hook({ scriptOf: () => path });
    await hook.apply(toB, signal());
    path = stage.path;
    await hook.apply(toB, signal());
    expect(await stage.calls()).toEqual([]);
    await hook.apply(routeOf({ primary: C, previous: B, configEpoch: 7 }), signal());
    expect(await stage.calls()).toEqual(['cache observer start 10.0.0.2 6380 2001:db8::3 6381']);
  });

  test('a planned move says so; other replicas, phases and epochs call nobody', async () => {
    const hook = stage.hook();
    await hook.apply(routeOf(), signal());
    await hook.apply({ ...toB, phase: 'prepared', order: 11 }, signal());
    expect(await stage.text('env')).toContain('POINTSMAN_PLANNED=1');
    await hook.apply({ ...toB, phase: 'failover', replicas: [{ address: A, healthy: true }] }, signal());
    expect(await stage.calls()).toHaveLength(1);
    expect(hook.differs(toB, { ...toB, configEpoch: 9, replicas: [{ address: A, healthy: true }], phase: 'steady' })).toBe(false);
    expect(hook.differs(toB, { ...toB, primary: C })).toBe(true);
  });
});

describe('exit codes', () => {
  test('0 is done', async () => {
    const hook = stage.hook();
    await hook.apply(toB, signal());
    expect([stage.failures, hook.pending()]).toEqual([[], []]);
  });

  test.each([['exit 1'], ['kill -9 $$']])('%s is tried again and shown as pending', async (body) => {
    await stage.script(body);
    const hook = stage.hook();
    await expect(hook.apply(toB, signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    await expect(hook.apply(toB, signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    expect(hook.pending()).toEqual([
      { argv: [stage.path, 'cache', 'leader', 'start', '10.0.0.1', '6379', '10.0.0.2', '6380'], runs: 2, running: false, pid: null,
        dueAtMs: expect.any(Number) },
    ]);
    expect(stage.failures).toEqual([]);
    await stage.script('exit 0');
    await hook.apply(toB, signal());
    expect(hook.pending()).toEqual([]);
  });

  test('ten failed runs are an alarm, once, and no end', async () => {
    await stage.script('exit 1');
    const hook = stage.hook();
    for (let run = 0; run < 12; run++) await expect(hook.apply(toB, signal())).rejects.toThrow();
    expect(stage.failures).toEqual([[stage.path, 0, 1]]);
    expect(await stage.calls()).toHaveLength(12);
  });

  test('2 and above give up: told, not tried again, the next target is', async () => {
    await stage.script('echo reason why >&2; exit 2');
    const hook = stage.hook();
    expect((await hook.apply(toB, signal())).detail).toContain('gave up: exit code 2');
    await hook.apply(toB, signal());
    expect(await stage.calls()).toHaveLength(1);
    expect(stage.failures).toEqual([[stage.path, 0, 2]]);
    expect(stage.lines.join('')).toContain('reason why');
    await hook.apply(routeOf({ primary: C, previous: B, configEpoch: 7 }), signal());
    expect((await stage.calls()).at(-1)).toBe('cache observer start 10.0.0.1 6379 2001:db8::3 6381');
  });

  test('a file that cannot run gives up as stock does', async () => {
    await writeFile(stage.path, 'echo no magic');
    const hook = stage.hook();
    await hook.apply(toB, signal());
    expect(stage.failures).toEqual([[stage.path, 0, 2]]);
  });

  test('the time limit kills and counts as a retry', async () => {
    await stage.script('sleep 1000');
    const hook = stage.hook({ maxRuntimeMs: () => 200 });
    await expect(hook.apply(toB, signal())).rejects.toThrow('ran too long');
    expect(hook.pending()[0]).toMatchObject({ runs: 1, running: false });
  });
});

describe('a newer target', () => {
  test('ends a running call, starts when its group is gone, and the stale one never runs again', async () => {
    const hang = '[ "$6" = 10.0.0.2 ] && { trap "" TERM; touch busy; while :; do sleep 0.02; done; }';
    const look = 'ps -e -o pgid=,stat= | awk -v g="$(cat group)" \'$1 == g && $2 !~ /^Z/\' > overlap; echo looked >> overlap';
    await stage.script(`${hang}\n${look}`);
    const hook = stage.hook();
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [hook], log });
    reconciler.submit(toB);
    await waitFor(() => readFile(join(stage.folder, 'busy')).then(() => true, () => false), 'the first call');
    const [running] = hook.pending();
    expect(running).toMatchObject({ running: true, pid: expect.any(Number), runs: 1 });
    await writeFile(join(stage.folder, 'group'), String(running?.pid));
    reconciler.submit(routeOf({ primary: C, previous: B, configEpoch: 7 }));
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the second call');
    expect(await stage.calls()).toEqual([CALL_AB, 'cache observer start 10.0.0.1 6379 2001:db8::3 6381']);
    expect(await stage.text('overlap')).toBe('looked\n');
    expect(hook.pending()).toEqual([]);
    await reconciler.close();
  });

  test('replaces a call that waits for its retry', async () => {
    await stage.script('[ "$6" = 10.0.0.2 ] && exit 1; exit 0');
    const hook = stage.hook();
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [hook], log });
    reconciler.submit(toB);
    await waitFor(() => (reconciler.status()[0]?.attempts ?? 0) >= 3, 'two retries');
    reconciler.submit(routeOf({ primary: C, previous: B, configEpoch: 7 }));
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the new target');
    const calls = await stage.calls();
    expect(calls.at(-1)).toContain('2001:db8::3');
    expect(calls.filter((line) => line.includes('2001:db8::3'))).toHaveLength(1);
    expect(calls.findLastIndex((line) => line === CALL_AB)).toBe(calls.length - 2);
    await reconciler.close();
  });

  test('other replicas do not end a running call', async () => {
    await stage.script('touch started; while [ ! -e go ]; do sleep 0.02; done');
    const hook = stage.hook();
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [hook], log });
    reconciler.submit(toB);
    await waitFor(async () => (await stage.calls()).length === 1, 'the call');
    for (const healthy of [true, false, true]) reconciler.submit({ ...toB, replicas: [{ address: A, healthy }] });
    await writeFile(join(stage.folder, 'go'), '');
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the call to end');
    expect(await stage.calls()).toEqual([CALL_AB]);
    await reconciler.close();
  });

  test('close ends a running call, and the next start makes it again', async () => {
    await stage.script('touch started; while :; do sleep 0.02; done');
    const hook = stage.hook();
    const applied = expect(hook.apply(toB, signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    await waitFor(async () => (await stage.calls()).length === 1, 'the call');
    await hook.close();
    await applied;
    await stage.script('exit 0');
    await stage.hook().apply({ ...toB, previous: null }, signal());
    expect(await stage.calls()).toEqual([CALL_AB, CALL_AB]);
  });
});

test('at most 16 at once, in order; the rest waits', async () => {
  await stage.script('echo x >> "started-$1"; while [ ! -e go ]; do sleep 0.1; done');
  const hook = stage.hook();
  const all = Array.from({ length: 18 }, (_, index) => hook.apply({ ...toB, master: `m${index}` }, signal()));
  await waitFor(() => hook.pending().filter(({ running }) => running).length === 16, '16 scripts', 30_000);
  expect(hook.pending().filter(({ running }) => !running).map(({ argv }) => argv[1])).toEqual(['m16', 'm17']);
  await writeFile(join(stage.folder, 'go'), '');
  await Promise.all(all);
  expect(await stage.calls()).toHaveLength(18);
});

test('slots: an aborted wait takes no slot, one given back twice counts once', async () => {
  const slots = new Slots(1);
  const first = await slots.take(signal());
  const abort = new AbortController();
  const waiting = expect(slots.take(abort.signal)).rejects.toThrow('gone');
  const third = slots.take(signal());
  abort.abort(new Error('gone'));
  await waiting;
  first();
  first();
  const giveBack = await third;
  const order: string[] = [];
  const fourth = slots.take(signal()).then(() => order.push('fourth'));
  order.push('given back');
  giveBack();
  await fourth;
  expect(order).toEqual(['given back', 'fourth']);
});
