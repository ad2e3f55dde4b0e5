import type { ChildCommand } from './child-transport.ts';
import type { FoldMapping } from './folding/fold-mapping.ts';

/** Where an upstream is found. */
export type UpstreamTarget =
	| ({ readonly kind: 'command' } & ChildCommand)
	| {
			/** `http`: Streamable HTTP. `sse`: the transport of 2024-11-05. */
			readonly kind: 'http' | 'sse';
			readonly url: string;
			/** Sent with every request. A host's own token is never passed on. */
			readonly headers: Readonly<Record<string, string>>;
	  };

/** What the operator knows better than the upstream says about one of its tools. */
export interface UpstreamToolOptions {
	/**
	 * How long a call may take and still be answered at once, in milliseconds. Default 1,000.
	 */
	readonly syncWindowMs?: number;
	/** Whether a second call with the same arguments does no harm. Default: what the tool's annotations say. */
	readonly idempotent?: boolean;
	/** Whether hosts see the tool. Default true. */
	readonly visible?: boolean;
}

/** One server behind the gateway. */
export interface UpstreamOptions {
	/** Unique within the gateway, in words of letters, digits, `-` and `_`. */
	readonly name: string;
	readonly target: UpstreamTarget;
	/** Goes before the names of its tools and prompts. */
	readonly prefix: string;
	/** How many calls are in flight at once; further ones wait their turn. Default 64. */
	readonly maxConcurrentCalls: number;
	/** Largest result of a call that is passed on, as JSON in bytes. Default 10 MiB. */
	readonly maxResultBytes: number;
	/** How long it may take to start and to answer the handshake, in milliseconds. Default 30,000. */
	readonly startTimeoutMs: number;
	/** By the upstream's own names. */
	readonly tools: Readonly<Record<string, UpstreamToolOptions>>;
	/** The families of tools that hosts see as one tool each. */
	readonly folds: readonly FoldMapping[];
}
