/**
 * What the agent and its DNS workers say to each other. A worker does one thing after the other, and answers each by its id.
 */
import type { RateLimitSettings } from '../rate-limit.js';
import type { DnsCounters } from '../responder.js';
import type { ZoneChange, ZoneImage } from '../zone-image.js';

/** How a worker answers beside the zone: who may have transfers (by UDP, one SOA), and limits. */
export interface WorkerService {
  readonly gate: {
    readonly key: { readonly name: string; readonly secret: Buffer } | null;
    readonly allow: readonly string[];
    readonly startedAt: number;
  } | null;
  readonly rateLimit: RateLimitSettings | null;
}

export interface UdpAddress {
  readonly host: string;
  readonly port: number;
}

export type Order =
  | { readonly kind: 'zone'; readonly zone: ZoneImage; readonly service: WorkerService }
  | { readonly kind: 'change'; readonly change: ZoneChange }
  | { readonly kind: 'open'; readonly address: UdpAddress }
  | { readonly kind: 'close'; readonly address: UdpAddress };

export type ToWorker = Order & { readonly id: number };

export type FromWorker =
  /** It listens to orders from now on; what was sent before is lost. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly id: number; readonly fault: { readonly code: string; readonly message: string } | null }
  | { readonly kind: 'log'; readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly context: object; readonly message: string }
  | { readonly kind: 'counters'; readonly counters: DnsCounters };
