// Hooks of pointsman.yaml with real processes: when they are called, with what, as whom, and what a `pre` hook can refuse.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Hook, whyVetoed } from '../../../src/publishers/hooks/hook.js';
import type { HookSettings } from '../../../src/publishers/hooks/hook.js';
import { hookFaults } from '../../../src/publishers/hooks/self-test.js';
import { Reconciler } from '../../../src/publishers/reconciler.js';
import { parseAddress } from '../../../src/sentinel/wire/address.js';
import { publisherCompliance } from './compliance.js';
import { A, B, C, captureLog, routeOf, waitFor } from './routes.js';

/** A folder with a hook that notes words, environment and input of each call, and then does what `body` says. */
class Place {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-hooks-'));
  readonly lines: string[] = [];

  constructor(body = 'exit 0') {
    this.script(body);
  }

  get path(): string {
    return join(this.folder, 'hook.sh');
  }

  script(body: string): void {
    const note = ['echo "$POINTSMAN_PHASE $POINTSMAN_PLANNED $POINTSMAN_FROM $POINTSMAN_TO" >> phases', 'echo "$@" >> calls', 'cat > input'];
    writeFileSync(`${this.path}.new`, ['#!/bin/bash', `cd "${this.folder}"`, ...note, body, ''].join('\n'));
    chmodSync(`${this.path}.new`, 0o755);
    renameSync(`${this.path}.new`, this.path);
  }

  settings(more: Partial<HookSettings> = {}): HookSettings {
    return {
      name: 'pager', command: [this.path, 'first word'], on: ['failover', 'prepared', 'aborted'], masters: [], timeoutMs: 10_000, user: null,
      capabilities: 'drop', limits: {}, ...more,
    };
  }

  hook(more: Partial<HookSettings> = {}): Hook {
    const { log, lines } = captureLog();
    Object.defineProperty(this, 'lines', { value: lines, configurable: true });
    return new Hook(this.settings(more), { log, onFailure: () => undefined, stateFile: join(this.folder, 'state.json') });
  }

  text(name: string): string {
    return existsSync(join(this.folder, name)) ? readFileSync(join(this.folder, name), 'utf8').trim() : '';
  }

  listOf(name: string): string[] {
    return this.text(name).split('\n').filter((line) => line !== '');
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const signal = (): AbortSignal => new AbortController().signal;
const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? test : test.skip;
if (!isRoot) process.stderr.write('skipped: hooks as another user, without capabilities and with limits need root\n');

let place: Place;
beforeEach(() => { place = new Place(); });
afterEach(() => place.remove());

publisherCompliance('hook', async () => {
  const stage = new Place('while [ -e stalled ]; do sleep 0.02; done');
  const calls = (): string[][] => stage.listOf('calls').map((line) => line.replace('first word ', '').split(' '));
  return {
    publisher: stage.hook(),
    seen: async (master) => {
      const last = calls().filter(([name]) => name === master).at(-1);
      return last === undefined ? null : parseAddress(`${last[5]?.includes(':') ? `[${last[5]}]` : last[5]}:${last[6]}`);
    },
    writes: async () => calls().length,
    stall: async () => {
      writeFileSync(join(stage.folder, 'stalled'), '');
      return async () => rmSync(join(stage.folder, 'stalled'));
    },
    restart: async () => stage.hook(),
    dispose: async () => stage.remove(),
  };
});

describe('a call', () => {
  test("gets the command's words, stock's seven, the environment, and the Route on standard input", async () => {
    const hook = place.hook();
    const replicas = [{ address: C, healthy: false }];
    await hook.apply(routeOf({ primary: B, previous: A, configEpoch: 6, phase: 'failover', role: 'leader', replicas }), signal());
    expect(place.listOf('calls')).toEqual(['first word cache leader start 10.0.0.1 6379 10.0.0.2 6380']);
    expect(place.listOf('phases')).toEqual(['failover 0 10.0.0.1:6379 10.0.0.2:6380']);
    expect(JSON.parse(place.text('input'))).toEqual({
      master: 'cache', phase: 'failover', planned: false, role: 'leader', epoch: 6, order: 12, from: '10.0.0.1:6379', to: '10.0.0.2:6380',
      since: '1970-01-01T00:00:00.000Z', replicas: [{ address: '[2001:db8::3]:6381', healthy: false }],
    });
  });

  test('is not disturbed by a hook that does not read its input', async () => {
    writeFileSync(place.path, `#!/bin/bash\nexec <&-\ntouch "${place.folder}/ran"\n`);
    await place.hook().apply(routeOf({ primary: B, previous: A, configEpoch: 6 }), signal());
    expect(existsSync(join(place.folder, 'ran'))).toBe(true);
  });

  test('concerns only the masters that are named', async () => {
    const hook = place.hook({ masters: ['sessions'] });
    await hook.apply(routeOf({ primary: B, previous: A, configEpoch: 6 }), signal());
    await hook.apply(routeOf({ master: 'sessions', primary: B, previous: A, configEpoch: 6 }), signal());
    expect(place.listOf('calls')).toEqual(['first word sessions observer start 10.0.0.1 6379 10.0.0.2 6380']);
  });

  test('ends at its time limit with all that it started, and is tried again', async () => {
    place.script('sleep 60 & echo $! > child; wait');
    const hook = place.hook({ timeoutMs: 300 });
    await expect(hook.apply(routeOf({ primary: B, previous: A, configEpoch: 6 }), signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    expect(existsSync(`/proc/${place.text('child')}`) && readFileSync(`/proc/${place.text('child')}/stat`, 'latin1').includes(') S')).toBe(false);
    place.script('exit 0');
    await hook.apply(routeOf({ primary: B, previous: A, configEpoch: 6 }), signal());
    expect(place.listOf('calls')).toHaveLength(2);
  });

  test('never runs twice at a time, and the last of many Routes is called for', async () => {
    // Ended for a newer Route it cleans up, or the next one would take its folder for itself.
    place.script("trap 'rmdir running; exit 143' TERM; mkdir running || echo overlap >> overlaps; sleep 0.1 & wait; rmdir running");
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [place.hook()], log });
    for (const [index, primary] of [B, C, A, B, C, B].entries()) {
      reconciler.submit(routeOf({ primary, previous: A, configEpoch: 6 + index }));
      await new Promise((resolve) => { setTimeout(resolve, 30); });
    }
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the last Route', 20_000);
    expect(place.text('overlaps')).toBe('');
    expect(place.listOf('calls').at(-1)).toMatch(/ 10\.0\.0\.2 6380$/);
    await reconciler.close();
  });
});

describe('phases', () => {
  const prepared = routeOf({ primary: B, previous: A, configEpoch: 5, order: 11, phase: 'prepared' });
  const done = routeOf({ primary: B, previous: A, configEpoch: 6, phase: 'failover' });
  const settled = routeOf({ primary: B, previous: A, configEpoch: 6 });

  test('prepared moves, done to the same target needs no second call, aborted moves back', async () => {
    const hook = place.hook();
    for (const route of [routeOf(), prepared, done, settled]) await hook.apply(route, signal());
    expect(place.listOf('phases')).toEqual(['prepared 1 10.0.0.1:6379 10.0.0.2:6380']);
    const again = routeOf({ primary: A, previous: B, configEpoch: 6, order: 15, phase: 'prepared' });
    for (const route of [again, routeOf({ primary: B, previous: A, configEpoch: 8 })]) await hook.apply(route, signal());
    expect(place.listOf('phases').slice(1)).toEqual(['prepared 1 10.0.0.2:6380 10.0.0.1:6379', 'aborted 1 10.0.0.1:6379 10.0.0.2:6380']);
  });

  test('a hook for failovers alone is called at done, not at prepared', async () => {
    const hook = place.hook({ on: ['failover'] });
    await hook.apply(routeOf(), signal());
    expect((await hook.apply(prepared, signal())).detail).toBe('not called for prepared');
    expect(place.listOf('calls')).toEqual([]);
  });

  test('steady comes once, when the group has settled on a new primary, and is repeated until it works', async () => {
    const hook = place.hook({ on: ['failover', 'steady'] });
    await hook.apply(routeOf(), signal());
    await hook.apply(done, signal());
    expect(place.listOf('phases')).toEqual(['failover 0 10.0.0.1:6379 10.0.0.2:6380']);
    place.script('exit 1');
    await expect(hook.apply(settled, signal())).rejects.toMatchObject({ code: 'SCRIPT_FAILED' });
    place.script('exit 0');
    for (let times = 0; times < 2; times++) await hook.apply(settled, signal());
    expect(place.listOf('phases').slice(1)).toEqual(['steady 0 10.0.0.1:6379 10.0.0.2:6380', 'steady 0 10.0.0.1:6379 10.0.0.2:6380']);
  });

  test('a failover that was over before the agent came back is called for as one', async () => {
    const before = place.hook();
    await before.apply(routeOf(), signal());
    await before.close();
    await place.hook().apply(routeOf({ primary: B, configEpoch: 6 }), signal());
    expect(place.listOf('phases')).toEqual(['failover 0 10.0.0.1:6379 10.0.0.2:6380']);
  });

  test('a lower order than the one served before a restart calls nobody, and says whose order it is', async () => {
    const before = place.hook();
    await before.apply(routeOf(), signal());
    await before.apply(done, signal());
    await before.close();
    expect((await place.hook().apply(routeOf({ primary: A, configEpoch: 3 }), signal())).order).toBe(12);
    expect(place.listOf('calls')).toHaveLength(1);
  });
});

describe('as whom it runs', () => {
  const run = async (body: string, more: Partial<HookSettings>): Promise<string> => {
    chmodSync(place.folder, 0o755);
    writeFileSync(place.path, `#!/bin/bash\n${body}\n`);
    const out = join(place.folder, 'out');
    writeFileSync(out, '');
    chmodSync(out, 0o666);
    await place.hook(more).apply(routeOf({ primary: B, previous: A, configEpoch: 6 }), signal());
    return readFileSync(out, 'utf8').trim();
  };

  asRoot('a user of its own, without the network capabilities', async () => {
    const out = await run('{ id -un; grep -E "CapEff|CapAmb|CapBnd" /proc/$$/status; } > "${0%/*}/out"', { user: 'nobody' });
    const [user, ...capabilities] = out.split('\n');
    expect(user).toBe('nobody');
    const bits = Object.fromEntries(capabilities.map((line) => line.split(/:\s+/) as [string, string]));
    expect([bits['CapEff'], bits['CapAmb']]).toEqual(['0000000000000000', '0000000000000000']);
    expect(BigInt(`0x${bits['CapBnd']}`) & 0x3000n).toBe(0n);
  });

  asRoot('capabilities: keep hands exactly the two on to another user', async () => {
    const out = await run('grep -E "CapEff" /proc/$$/status > "${0%/*}/out"', { user: 'nobody', capabilities: 'keep' });
    expect(out.split(/\s+/)).toEqual(['CapEff:', '0000000000003000']);
  });

  asRoot('limits are set, and a root hook without capabilities cannot touch the network', async () => {
    const out = await run('{ ulimit -n; grep CapEff /proc/$$/status; } > "${0%/*}/out"', { limits: { nofile: 17 } });
    const [files, capabilities = ''] = out.split('\n');
    expect(files).toBe('17');
    expect(BigInt(`0x${capabilities.split(/\s+/)[1]}`) & 0x3000n).toBe(0n);
  });
});

describe('the self-test', () => {
  const faultsOf = (more: Partial<HookSettings> = {}): string => hookFaults(place.settings(more)).join('\n');

  test('finds nothing wrong with a sound hook', () => expect(faultsOf()).toBe(''));

  test('names what is missing, open to all, no program, or unknown', () => {
    const other = (name: string, mode: number, text = '#!/bin/sh\n'): string => {
      const path = join(place.folder, name);
      writeFileSync(path, text);
      chmodSync(path, mode);
      return path;
    };
    mkdirSync(join(place.folder, 'open'));
    chmodSync(join(place.folder, 'open'), 0o777);
    expect(faultsOf({ command: [join(place.folder, 'none')] })).toContain('no such file or directory');
    expect(faultsOf({ command: [place.folder] })).toContain('is no regular file');
    expect(faultsOf({ command: [other('plain', 0o644)] })).toContain('may not be executed by uid');
    expect(faultsOf({ command: [other('text', 0o755, 'echo hello\n')] })).toContain('begins with neither #! nor an ELF header');
    expect(faultsOf({ command: [other('loose', 0o757)] })).toContain('is writable by everybody');
    expect(faultsOf({ command: [other('open/script', 0o755)] })).toContain('its folder is writable by everybody');
    expect(faultsOf({ user: 'no-such-user' })).toBe('user "no-such-user" does not exist on this machine');
    expect(faultsOf({ limits: { files: 3 } })).toContain('unknown limit "files"');
    symlinkSync(other('target', 0o755), join(place.folder, 'link'));
    expect(faultsOf({ command: [join(place.folder, 'link')] })).toBe('');
  });

  asRoot('looks with the eyes of the user it will run as', () => {
    chmodSync(place.folder, 0o700);
    chownSync(place.path, 0, 0);
    chmodSync(place.path, 0o700);
    expect(faultsOf({ user: 'nobody' })).toContain(`may not enter ${place.folder}`);
    expect(faultsOf({ user: 'nobody' })).toContain('may not be executed by uid 65534');
  });
});

describe('pre hooks', () => {
  const move = { master: 'cache', from: A, to: B, epoch: 5 };
  const ask = (body: string, more: Partial<HookSettings> = {}, to: typeof B | null = B): Promise<string | null> => {
    place.script(body);
    return whyVetoed([place.settings({ on: ['pre'], ...more })], { ...move, to }, captureLog().log);
  };

  test('let a planned move begin with exit 0, told where it goes', async () => {
    expect(await ask('exit 0')).toBeNull();
    expect(place.listOf('calls')).toEqual(['first word cache leader pre 10.0.0.1 6379 10.0.0.2 6380']);
    expect(place.listOf('phases')).toEqual(['pre 1 10.0.0.1:6379 10.0.0.2:6380']);
    expect(await ask('exit 0', {}, null)).toBeNull();
    expect(JSON.parse(place.text('input'))).toMatchObject({ phase: 'pre', from: '10.0.0.1:6379', to: null });
  });

  test('refuse it with any other end, in their own words', async () => {
    expect(await ask('echo "the shop is full of people"; exit 3')).toBe('hook pager refuses the move: the shop is full of people');
    expect(await ask('exit 1')).toBe('hook pager refuses the move: exit code 1');
    expect(await ask('sleep 5', { timeoutMs: 200 })).toBe('hook pager refuses the move: it ran too long');
    expect(await ask('exit 0', { command: [join(place.folder, 'none')] })).toContain('no such file');
  });

  test('are asked for their own masters and only when they are pre hooks', async () => {
    expect(await ask('exit 1', { masters: ['other'] })).toBeNull();
    expect(await ask('exit 1', { on: ['failover'] })).toBeNull();
    expect(place.listOf('calls')).toEqual([]);
  });
});

test('util-linux is there, or the tests above mean nothing', () => {
  expect(spawnSync('setpriv', ['--version']).status).toBe(0);
  expect(spawnSync('prlimit', ['--version']).status).toBe(0);
});
