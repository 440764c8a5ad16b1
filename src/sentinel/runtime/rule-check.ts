/**
 * The self-test of a user's rights on a data node: which rules it lacks for what a sentinel does there, before a failover needs them.
 *
 * Redis judges a user's rules when a command is queued in MULTI. So the commands of a failover are queued with arguments that would do
 * nothing, and dropped: by DISCARD, or, where that is not allowed, by EXEC, which refuses a transaction with a refused command in it.
 * Every command beyond MULTI that a user lacks answers NOPERM and names itself. On a connection of its own, so that no PING is queued.
 */
import { Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { messageOf } from '../../errors.js';

/** What a sentinel does on a data node beyond what it does all the time (PING, INFO, PUBLISH: their refusal shows at once). */
const NEEDED: readonly (readonly string[])[] = [
  ['SLAVEOF', 'localhost', 'no-port'],
  ['CONFIG', 'REWRITE'],
  ['CLIENT', 'KILL', 'TYPE', 'no-type'],
  ['SCRIPT', 'KILL'],
  ['ROLE'],
];

/** What planned moves need more (silent and coordinated failover). */
const FOR_MOVES: readonly (readonly string[])[] = [
  ['CLIENT', 'PAUSE', '0', 'WRITE'],
  ['CLIENT', 'UNPAUSE'],
  ['CONFIG', 'SET', 'replica-read-only', 'yes'],
];

const LIMIT_MS = 5_000;

export interface RuleCheckOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** The name of a command on that node (rename-command). */
  readonly nameOf: (command: string) => string;
  readonly connection: Pick<RedisOptions, 'tls' | 'Connector'>;
}

/** Rules as they are written for ACL SETUSER, e.g. `+config|rewrite`. */
export interface MissingRules {
  readonly needed: readonly string[];
  readonly forMoves: readonly string[];
}

/**
 * Asks the node. Null when it can't be asked now (away, wrong password, older than ACLs); whoever watches the link says so.
 * Takes 5 s at most and never rejects.
 */
export async function missingRules(options: RuleCheckOptions): Promise<MissingRules | null> {
  const { host, port, user, password, nameOf, connection } = options;
  const client = new Redis({
    ...{ host, port, lazyConnect: true, protocol: 2, retryStrategy: null, enableReadyCheck: false, disableClientInfo: true },
    ...{ connectTimeout: LIMIT_MS, commandTimeout: LIMIT_MS, noDelay: true },
    ...connection,
  });
  // The outcome comes by the calls below; without a listener the library prints it.
  client.on('error', () => undefined);
  const ask = ([name = '', ...args]: readonly string[]): Promise<string | null> =>
    client.call(nameOf(name), ...args).then(() => null, (fault: unknown) => refusedRule(messageOf(fault)));
  try {
    await client.connect();
    await client.call(nameOf('AUTH'), user, password);
    const multi = await ask(['MULTI']);
    // Outside a transaction the others would be carried out.
    if (multi !== null) return { needed: ['+multi'], forMoves: [] };
    const [needed, forMoves] = await Promise.all([NEEDED, FOR_MOVES].map((group) => Promise.all(group.map(ask))));
    await ask(['DISCARD']);
    const exec = await ask(['EXEC']);
    const found = (rules: readonly (string | null)[] = []): string[] => [...new Set(rules.filter((rule) => rule !== null))];
    return { needed: found([...(needed ?? []), exec]), forMoves: found(forMoves) };
  } catch {
    return null;
  } finally {
    client.disconnect();
  }
}

/** The rule behind a refusal (texts of Redis 6 to 8 and Valkey); null for any other error. */
export function refusedRule(text: string): string | null {
  const command = /^NOPERM .*run the '([^']+)' command/.exec(text)?.[1];
  return command === undefined ? null : `+${command.toLowerCase()}`;
}
