/** Gateways of tests, also for a process of its own. */
import type { Backend } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import type { Clock } from '../../src/client/clock.ts';
import type { Log } from '../../src/engine/options.ts';
import type { FoldMappingInput } from '../../src/gateway/folding/fold-mapping.ts';
import { foldSchema } from '../../src/gateway/folding/presets.ts';
import type { GatewayOptions } from '../../src/gateway/gateway.ts';
import type { UpstreamOptions } from '../../src/gateway/upstream-options.ts';

/** The family that most tests fold. */
export const REPORTS = {
	start: { tool: 'start_report' },
	ids: { job: ['job', { text: String.raw`job ([\w-]+)` }] },
	check: { tool: 'get_report', arguments: { job: '{job}' }, readOnly: true },
	cancel: { tool: 'cancel_report', arguments: { job: '{job}' } },
	result: { path: 'text' },
	pollMs: 1_000,
} as const satisfies FoldMappingInput;

/** A clock on which time passes faster. */
export function fastClock(speed: number): Clock {
	const startMs = Date.now();
	return {
		nowMs: () => startMs + (Date.now() - startMs) * speed,
		after: (delayMs, action) => {
			const timer = setTimeout(action, delayMs / speed);
			return () => clearTimeout(timer);
		},
	};
}

/** One server behind a gateway. */
export interface Behind {
	readonly name: string;
	readonly target: UpstreamOptions['target'];
	/** What a configuration says under `fold`. */
	readonly fold: unknown;
	/** Goes before the names of its tools. */
	readonly prefix?: string;
	readonly tools?: UpstreamOptions['tools'];
}

/** A server over HTTP. */
export function overHttp(url: string): UpstreamOptions['target'] {
	return { kind: 'http', url, headers: {} };
}

/** How a gateway of a test differs from the usual one. */
export interface GatewayRigOptions {
	/** How much faster the time between two checks passes. */
	readonly speed?: number;
	readonly log?: Log;
	/** Where tasks are kept, with this time. Default: in memory. */
	readonly backend?: (time: Clock) => Backend;
}

/** Options of a gateway with these servers behind it. */
export function gatewayOptions(behind: readonly Behind[], options: GatewayRigOptions): GatewayOptions {
	const clock = fastClock(options.speed ?? 1);
	return {
		backend: options.backend?.(clock) ?? memory({ time: clock }),
		budgets: () => undefined,
		catalogue: { read: async () => undefined, write: async () => {} },
		clock,
		...(options.log && { log: options.log }),
		upstreams: behind.map(({ name, target, fold, prefix = '', tools = {} }) => ({
			...{ name, target, prefix, tools },
			...{ maxConcurrentCalls: 64, maxResultBytes: 1_048_576, startTimeoutMs: 10_000 },
			folds: foldSchema.parse(fold),
		})),
	};
}
