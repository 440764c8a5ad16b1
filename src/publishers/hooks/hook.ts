/**
 * A hook of pointsman.yaml as an output, and the hooks that are asked before a planned move.
 *
 * The command's own words come first, then stock's seven, so that a script written for client-reconfig-script serves unchanged.
 */
import { AgentError, messageOf } from '../../errors.js';
import type { Log } from '../../log.js';
import { formatAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { CallKind, Program } from './call.js';
import { runScript } from './child.js';
import type { ScriptEnd } from './child.js';
import { accountOf, wrapOf } from './launch.js';
import type { LaunchSettings } from './launch.js';
import { ScriptPublisher } from './script-publisher.js';
import type { ScriptPublisherOptions } from './script-publisher.js';

export interface HookSettings extends LaunchSettings {
  readonly name: string;
  /** argv; the first is an absolute path. */
  readonly command: readonly string[];
  readonly on: readonly (CallKind | 'pre')[];
  /** Empty: for every master. */
  readonly masters: readonly string[];
  readonly timeoutMs: number;
}

export type HookOptions = Pick<ScriptPublisherOptions, 'log' | 'onFailure' | 'stateFile' | 'slots' | 'now'>;

/** The output `hook-<name>`. */
export class Hook extends ScriptPublisher {
  constructor(settings: HookSettings, options: HookOptions) {
    const program = programOf(settings);
    super({
      ...options,
      name: `hook-${settings.name}`,
      programOf: (master) => (concerns(settings, master) ? program : null),
      wants: (kind) => settings.on.includes(kind),
      tellsRoute: true,
      maxRuntimeMs: () => settings.timeoutMs,
    });
  }
}

/** A planned move that somebody asks for, before it begins. */
export interface PlannedMove {
  readonly master: string;
  readonly from: Address;
  /** Null where the sentinel will choose. */
  readonly to: Address | null;
  readonly epoch: number;
}

/** Asks every `pre` hook of the master, one after the other: why the move must not begin, or null. What can't be asked refuses, too. */
export async function whyVetoed(hooks: readonly HookSettings[], move: PlannedMove, log: Log): Promise<string | null> {
  for (const hook of hooks.filter((each) => each.on.includes('pre') && concerns(each, move.master))) {
    const reason = await askOne(hook, move, log);
    if (reason !== null) return `hook ${hook.name} refuses the move: ${reason}`;
  }
  return null;
}

async function askOne(hook: HookSettings, { master, from, to, epoch }: PlannedMove, log: Log): Promise<string | null> {
  const target = to === null ? ['', ''] : [to.host, String(to.port)];
  const text = { POINTSMAN_FROM: formatAddress(from), POINTSMAN_TO: to === null ? '' : formatAddress(to) };
  const env = { POINTSMAN_MASTER: master, POINTSMAN_ROLE: 'leader', POINTSMAN_PHASE: 'pre', POINTSMAN_EPOCH: String(epoch), ...text };
  const input = `${JSON.stringify({ master, phase: 'pre', planned: true, epoch, from: text.POINTSMAN_FROM, to: text.POINTSMAN_TO || null })}\n`;
  let end: ScriptEnd;
  try {
    const { path, args, wrap } = programOf(hook);
    const stock = [master, 'leader', 'pre', from.host, String(from.port), ...target];
    end = await runScript({
      path, args: [...args, ...stock], wrap, input, limitMs: hook.timeoutMs,
      env: { ...env, POINTSMAN_REASON: 'planned', POINTSMAN_PLANNED: '1' },
    });
  } catch (fault) {
    return messageOf(fault);
  }
  const fields = { master, hook: hook.name, runtimeMs: end.runtimeMs, output: end.output };
  if (end.kind === 'exited' && end.exitCode === 0) {
    log.info(fields, 'hook lets the planned move begin');
    return null;
  }
  const reason = refusalOf(end);
  log.warn(fields, `hook refuses the planned move: ${reason}`);
  return reason;
}

/** The script's last words where it has any: they say more than a number. */
function refusalOf(end: ScriptEnd): string {
  switch (end.kind) {
    case 'exited': return end.output.split('\n').at(-1)?.trim() || `exit code ${end.exitCode}`;
    case 'signalled': return `it was killed by signal ${end.signal}`;
    case 'timedOut': return 'it ran too long';
    case 'aborted': return 'it was ended';
    case 'refused':
    case 'notStarted': return end.reason;
  }
}

const concerns = ({ masters }: HookSettings, master: string): boolean => masters.length === 0 || masters.includes(master);

function programOf(hook: HookSettings): Program {
  const [path = '', ...args] = hook.command;
  const account = hook.user === null ? null : accountOf(hook.user);
  if (hook.user !== null && account === null) throw new AgentError('CONFIG_INVALID', `hook ${hook.name}: user "${hook.user}" does not exist`);
  return { path, args, wrap: wrapOf(hook, account) };
}
