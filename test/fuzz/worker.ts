/**
 * One process of the fuzzer: so many inputs of one target from one seed; answers with the smallest input that fails, if any.
 */
import fc from 'fast-check';
import { TARGETS } from './targets.js';

export interface Order {
  readonly name: string;
  readonly seed: number;
  readonly runs: number;
}

export interface Outcome {
  readonly failure: string | null;
  /** As JSON. */
  readonly input: string;
}

/** Runs an order. */
export function carryOut({ name, seed, runs }: Order): Outcome {
  const target = TARGETS.find((each) => each.name === name);
  if (target === undefined) throw new Error(`no target ${name}`);
  const result = fc.check(fc.property(target.inputs, (input) => target.check(input)), { seed, numRuns: runs });
  if (!result.failed) return { failure: null, input: '' };
  const thrown = result.errorInstance;
  return { failure: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown), input: JSON.stringify(result.counterexample?.[0]) };
}

process.on('message', (order: Order) => process.send?.(carryOut(order)));
