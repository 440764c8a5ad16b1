/**
 * A running move in words: one line per step for people, and the plan and findings before it. Pure.
 */
import { formatAddress } from '../sentinel/wire/address.js';
import type { Finding } from './findings.js';
import type { Facts } from './move-state.js';
import type { Plan, Step } from './plan.js';
import { contractOf, describeStep, stepsOf } from './plan.js';

const BAR_LETTERS = 24;

export function planLines(plan: Plan): string[] {
  const title = `move ${plan.master} from ${formatAddress(plan.original)} to ${formatAddress(plan.target)}, ${plan.mode}${plan.barrier ? ' with barrier' : ''}`;
  const steps = stepsOf(plan.mode).map((step, index) => `  ${String(index + 1).padStart(2)} ${step.padEnd(12)} ${describeStep(step, plan)}`);
  return [title, ...contractOf(plan).map((line) => `  - ${line}`), ...steps];
}

export function findingLines(findings: readonly Finding[]): string[] {
  return findings.map(({ level, about, text }) => `${level === 'stop' ? 'STOP' : 'warn'}  ${about}: ${text}`);
}

/** `[######------]`; empty without a part. */
export function bar(part: number | undefined): string {
  if (part === undefined) return '';
  const full = Math.round(Math.min(1, Math.max(0, part)) * BAR_LETTERS);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_LETTERS - full)}] `;
}

export function stepLine(step: Step, ms: number, facts: Facts): string {
  return `ok    ${step.padEnd(12)} ${String(ms).padStart(7)} ms  ${factWords(step, facts)}`.trimEnd();
}

function factWords(step: Step, facts: Facts): string {
  const text = (name: string): string => String(facts[name] ?? '');
  switch (step) {
    case 'save': return `${text('nodes')} nodes, ${text('sentinels')} sentinels`;
    case 'auto-revert': return `${text('told')} sentinels told`;
    case 'chain': return `${text('repointed')} replicas follow the target`;
    case 'prepare': return 'overruled' in facts ? 'overruled' : `done-epoch ${text('doneEpoch')}, ${text('outputs')} outputs acknowledged, TTL ${text('ttlMs')} ms`;
    case 'drain': return drainWords(facts);
    case 'settle': return `epoch ${text('epoch')}, ${text('fullCopies')} full copies, longest blind time ${text('longestBlindMs')} ms${problemWords(facts)}`;
    case 'restore': return problemWords(facts).replace(/^; /, '');
    default: return problemWords(facts).replace(/^; /, '');
  }
}

function drainWords(facts: Facts): string {
  if ('overruled' in facts) return 'overruled';
  const left = facts['left'] === undefined ? 'nobody left' : `left: ${String(facts['left'])} (${String(facts['why'])})`;
  return 'cutShort' in facts ? `cut short: ${String(facts['cutShort'])}` : `${String(facts['cut'])} connections cut, ${left}`;
}

function problemWords({ problems }: Facts): string {
  return Array.isArray(problems) && problems.length > 0 ? `; ${problems.map(String).join('; ')}` : '';
}

/** The closing table: what it cost. */
export function reportLines(facts: Facts): string[] {
  const times = Object.entries((facts['times'] ?? {}) as Record<string, number>);
  const value = (name: string): string => String(facts[name] ?? '-');
  const still = value('stillAtOld');
  return [
    `times            ${times.map(([step, ms]) => `${step} ${ms}`).join(', ')} (ms)`,
    `connections cut  ${value('cut')}`,
    `longest blind    ${value('longestBlindMs')} ms (a probe that asks a sentinel and writes every 20 ms)`,
    `full copies      ${value('fullCopies')}`,
    ...(still === '' || still === '-' ? [] : [`still at the old master  ${still}: they are told READONLY`]),
  ];
}
