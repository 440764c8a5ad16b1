/**
 * Whether somebody else has a VIP, as far as the network tells.
 */
import { connect } from 'node:net';
import { AgentError } from '../../errors.js';
import { starterThread } from '../../starter-thread.js';
import type { VipPrograms, VipSettings } from './settings.js';

/** A neighbour that has the address answers within this (its kernel does, be it with a refusal); silence = nobody. Clients wait for it in every planned move. */
const ANSWER_MS = 20;
const DAD_LIMIT_MS = 3_000;

/** Whether a TCP connection to the address is accepted or refused; both come from a host that has it. */
export function answersTcp(ip: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port });
    const settle = (answers: boolean): void => {
      clearTimeout(late);
      socket.destroy();
      resolve(answers);
    };
    const late = setTimeout(() => settle(false), ANSWER_MS);
    socket.on('connect', () => settle(true));
    socket.on('error', (fault: NodeJS.ErrnoException) => settle(fault.code === 'ECONNREFUSED' || fault.code === 'ECONNRESET'));
  });
}

/** `arping -D`: duplicate address detection as DHCP clients do it. Takes the full second where the address is free. */
export async function isTaken(vip: VipSettings, { arping }: VipPrograms, signal: AbortSignal): Promise<boolean> {
  if (arping === null) throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip}: dad needs arping, which is not installed`);
  const [program = '', ...words] = arping;
  const args = [...words, '-q', '-D', '-c', '2', '-w', '1', '-I', vip.interface, vip.ip];
  const limit = AbortSignal.any([signal, AbortSignal.timeout(DAD_LIMIT_MS)]);
  const status = await new Promise<number | string>((resolve) => {
    const started = starterThread.start({ path: program, args }, {
      failed: ({ message }) => resolve(message),
      exited: (code, name) => resolve(code ?? name ?? 'no status'),
    });
    limit.addEventListener('abort', () => started.kill('SIGKILL'), { once: true });
  });
  if (status === 0) return false;
  if (status === 1) return true;
  signal.throwIfAborted();
  throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip}: ${program} -D on ${vip.interface} failed (${status})`);
}
