/**
 * All users of this sentinel: from sentinel.conf, from an ACL file, by ACL SETUSER; and who gets in.
 *
 * Mirrors the registry half of acl.c. `requirepass` is the password of the user `default`; a `user default` line wins over it.
 * Divergence D34: an ACL file without a `default` line leaves that password in force, where the server would open the door.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { EXIT, FatalError, messageOf } from '../../../errors.js';
import { splitArgs } from '../../wire/conf-tokens.js';
import { AclLog } from './acl-log.js';
import type { AclUser } from './acl-user.js';
import { applyRules, describeUser, describeUserForFile, newDefaultUser, newUser, passwordFits } from './acl-user.js';

export interface AclSources {
  readonly users: readonly string[];
  readonly aclFile?: string | undefined;
  readonly requirePass: string | null;
}

export class Acl {
  readonly log = new AclLog();
  readonly aclFile: string | null;
  #requirePass: string | null;
  #users = new Map<string, AclUser>();

  /** @throws FatalError with all faults of the user lines. */
  constructor({ users, aclFile, requirePass }: AclSources) {
    this.aclFile = aclFile === undefined || aclFile === '' ? null : aclFile;
    this.#requirePass = requirePass;
    const read = readUserLines(users, this.#freshDefault());
    const faults = read.faults.map(({ line, text }) => `user line ${line}: ${text}`);
    if (users.length > 0 && this.aclFile !== null) faults.push('users stand in sentinel.conf and an aclfile is named too: only one may be');
    if (faults.length > 0) throw new FatalError('CONFIG_INVALID', `users of sentinel.conf: ${faults.join('; ')}`, EXIT.badConfig);
    this.#users = read.users;
  }

  get(name: string): AclUser | undefined {
    return this.#users.get(name);
  }

  /** In alphabetical order. */
  all(): AclUser[] {
    return [...this.#users.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get default(): AclUser {
    return this.#users.get('default') ?? newUser('default');
  }

  /** Whether a connection that has not said who it is may already command. */
  get isOpen(): boolean {
    return this.default.nopass && this.default.enabled;
  }

  /** The user that these words open, or null. */
  authenticate(name: string, password: string): AclUser | null {
    const user = this.#users.get(name);
    return user !== undefined && passwordFits(user, password) ? user : null;
  }

  /** Makes or changes a user; the sentence why not, or null. */
  setUser(name: string, rules: readonly string[]): string | null {
    const changed = applyRules(this.#users.get(name) ?? newUser(name), rules);
    if (typeof changed === 'string') return changed;
    this.#users.set(name, changed);
    return null;
  }

  /** Whether there was such a user. */
  deleteUser(name: string): boolean {
    return this.#users.delete(name);
  }

  setRequirePass(password: string | null): void {
    this.#requirePass = password;
    this.#users.set('default', withPassword(this.default, password));
  }

  /** The lines for sentinel.conf; none when an ACL file holds the users. */
  userLines(): string[] {
    return this.aclFile === null ? this.all().map(describeUserForFile) : [];
  }

  /** The line of the user `default` as requirepass alone makes it. */
  get impliedLine(): string {
    return describeUserForFile(this.#freshDefault());
  }

  /** Reads the ACL file and replaces all users; the sentence why not, or null. */
  async load(): Promise<string | null> {
    const path = this.aclFile ?? '';
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (cause) {
      return `Error loading ACLs, opening file '${path}': ${messageOf(cause)}`;
    }
    const read = readUserLines(text.split('\n'), this.#freshDefault());
    if (read.faults.length === 0) {
      this.#users = read.users;
      return null;
    }
    const faults = read.faults.map((fault) => `${path}:${fault.line}: ${fault.text}. `).join('');
    return `${faults}WARNING: ACL errors detected, no change to the previously active ACL rules was performed`;
  }

  /** Writes the ACL file by way of a new one beside it, so that a crash leaves one of the two whole. @throws what the disk says. */
  async save(): Promise<void> {
    const path = this.aclFile ?? '';
    const temporary = `${path}.tmp-${process.pid}-${randomBytes(4).toString('hex')}`;
    try {
      const file = await open(temporary, 'wx', 0o644);
      try {
        await file.writeFile(this.all().map((user) => `${describeUser(user)}\n`).join(''), 'utf8');
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (cause) {
      await rm(temporary, { force: true });
      throw cause;
    }
    const folder = await open(dirname(path), 'r');
    await folder.sync().finally(() => folder.close());
  }

  #freshDefault(): AclUser {
    return withPassword(newDefaultUser(), this.#requirePass);
  }
}

/** Whether a text can be a user's name. */
export function isUserName(name: string): boolean {
  return !/[\s\0]/.test(name);
}

function withPassword(user: AclUser, password: string | null): AclUser {
  const changed = applyRules(user, ['resetpass', password === null || password === '' ? 'nopass' : `>${password}`]);
  return typeof changed === 'string' ? user : changed;
}

interface LineFault {
  readonly line: number;
  readonly text: string;
}

interface UsersRead {
  readonly users: Map<string, AclUser>;
  readonly faults: readonly LineFault[];
}

function readUserLines(lines: readonly string[], defaultUser: AclUser): UsersRead {
  const users = new Map<string, AclUser>();
  const faults: LineFault[] = [];
  lines.forEach((text, index) => {
    const fault = /^\s*(?:#|$)/.test(text) ? null : readUserLine(text, users);
    if (fault !== null) faults.push({ line: index + 1, text: fault });
  });
  if (!users.has('default')) users.set('default', defaultUser);
  return { users, faults };
}

/** Adds the user of one line; the reason why not, or null. */
function readUserLine(text: string, users: Map<string, AclUser>): string | null {
  const [word, name, ...rules] = splitArgs(text) ?? [];
  if (word?.toLowerCase() !== 'user' || name === undefined) return 'a line must begin with the word user and a name';
  if (!isUserName(name)) return `'${name}' is no name for a user: it must not hold spaces or null characters`;
  if (users.has(name)) return `duplicate user '${name}'`;
  const user = applyRules(newUser(name), rules);
  if (typeof user === 'string') return user;
  users.set(name, user);
  return null;
}
