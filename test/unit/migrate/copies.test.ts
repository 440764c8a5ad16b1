/**
 * How far the forced copies are: one node under way, the other waiting for its turn, and both there.
 */
import { expect, test } from '@jest/globals';
import type { Context } from '../../../src/migrate/context.js';
import { Copies } from '../../../src/migrate/steps/copies.js';
import { formatAddress, type Address } from '../../../src/sentinel/wire/address.js';

const TARGET = { host: '10.0.0.2', port: 6379 };
const OLD = { host: '10.0.0.1', port: 6379 };
const OTHER = { host: '10.0.0.3', port: 6379 };
const MB = 1024 * 1024;

const follower = (more: string): string => `role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n${more}`;
const UP = follower('master_link_status:up\r\n');

/** Nodes as INFO replication tells them; what does not answer is dead. */
function copiesOf(infos: Readonly<Record<string, string>>, debts: readonly string[], memory = ''): Copies {
  const links = {
    text: (address: Address, _command: string, section: string): Promise<string> => {
      const text = section === 'memory' ? memory : infos[formatAddress(address)];
      return text === undefined ? Promise.reject(new Error(`${formatAddress(address)}: refused`)) : Promise.resolve(text);
    },
    isAlive: () => Promise.resolve(false),
  };
  const context = { plan: { target: TARGET, sentinels: [] }, links, group: { debts: () => Promise.resolve(new Set(debts)) } };
  return new Copies(context as unknown as Context, [OLD, OTHER]);
}

test('one copies, the other waits for its turn', async () => {
  const copying = follower(`master_link_status:down\r\nmaster_sync_in_progress:1\r\nmaster_sync_total_bytes:${200 * MB}\r\nmaster_sync_read_bytes:${50 * MB}\r\n`);
  const copies = copiesOf({ '10.0.0.1:6379': copying, '10.0.0.3:6379': UP }, ['10.0.0.1:6379', '10.0.0.3:6379']);
  expect(await copies.whyNotDone()).toBe('10.0.0.1:6379 copies the new master');
  expect(copies.progress()).toEqual({ text: '10.0.0.1:6379 copies the new master: 50 of 200 MB; 10.0.0.3:6379 waits for its turn', part: 0.125 });
});

test('a copy from memory to memory has no size: the data of the target stand for it', async () => {
  const copying = follower('master_link_status:down\r\nmaster_sync_in_progress:1\r\nmaster_sync_total_bytes:0\r\nmaster_sync_read_bytes:2097152\r\n');
  const copies = copiesOf({ '10.0.0.1:6379': copying, '10.0.0.3:6379': UP }, ['10.0.0.1:6379'], `used_memory_dataset:${4 * MB}\r\n`);
  expect(await copies.whyNotDone()).toBe('10.0.0.1:6379 copies the new master');
  expect(copies.progress()).toEqual({ text: '10.0.0.1:6379 copies the new master: 2.0 of 4.0 MB', part: 0.75 });
});

test('all links are up, but a sentinel still names a debt', async () => {
  const copies = copiesOf({ '10.0.0.1:6379': UP, '10.0.0.3:6379': UP }, ['10.0.0.3:6379']);
  expect(await copies.whyNotDone()).toBe('10.0.0.3:6379 still copies in full');
  expect(copies.progress()).toEqual({ text: '10.0.0.3:6379 waits for its turn', part: 0.5 });
});

test('the copy is there, and the sentinels have yet to see it: the bar does not go back', async () => {
  const infos: Record<string, string> = {
    '10.0.0.1:6379': follower(`master_link_status:down\r\nmaster_sync_in_progress:1\r\nmaster_sync_total_bytes:${MB}\r\nmaster_sync_read_bytes:${MB}\r\n`),
    '10.0.0.3:6379': UP,
  };
  const copies = copiesOf(infos, ['10.0.0.1:6379']);
  await copies.whyNotDone();
  infos['10.0.0.1:6379'] = UP;
  expect(await copies.whyNotDone()).toBe('10.0.0.1:6379 still copies in full');
  expect(copies.progress()).toEqual({ text: '10.0.0.1:6379 has its copy, which the sentinels have yet to see', part: 1 });
});

test('all there', async () => {
  expect(await copiesOf({ '10.0.0.1:6379': UP, '10.0.0.3:6379': UP }, []).whyNotDone()).toBeNull();
});

test('what a node is instead of a replica of the target is said', async () => {
  const astray = 'role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n';
  const copies = copiesOf({ '10.0.0.1:6379': 'role:master\r\n', '10.0.0.3:6379': astray }, []);
  expect(await copies.whyNotDone()).toBe('10.0.0.1:6379 is no replica yet; 10.0.0.3:6379 follows 10.0.0.1:6379');
  expect(copies.progress().part).toBe(0);
});
