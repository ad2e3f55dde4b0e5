/** Gateways of tests, also for a process of its own. */
import type { Backend } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import type { Clock } from '../../src/client/clock.ts';
import type { Log } from '../../src/engine/options.ts';
import type { FoldMapping, FoldMappingInput } from '../../src/gateway/folding/fold-mapping.ts';
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

/** What a configuration says under `fold`, checked as it is there. */
export function folds(value: unknown): readonly FoldMapping[] {
	return foldSchema.parse(value);
}

/** How a gateway of a test differs from the usual one. */
export interface RigOptions {
	readonly target?: UpstreamOptions['target'];
	readonly speed?: number;
	readonly log?: Log;
	readonly backend?: Backend;
	readonly tools?: UpstreamOptions['tools'];
}

/** Options of a gateway with one server behind it. */
export function gatewayOptions(url: string, fold: unknown, options: RigOptions): GatewayOptions {
	return {
		backend: options.backend ?? memory(),
		catalogue: { read: async () => undefined, write: async () => {} },
		clock: fastClock(options.speed ?? 1),
		...(options.log && { log: options.log }),
		upstreams: [
			{
				name: 'stand-in',
				target: options.target ?? { kind: 'http', url, headers: {} },
				prefix: '',
				maxConcurrentCalls: 64,
				startTimeoutMs: 10_000,
				tools: options.tools ?? {},
				folds: folds(fold),
			},
		],
	};
}
