import { hash } from 'node:crypto';
import { isTerminal } from '../protocol/status.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { Running } from './runner.ts';

/** Calls that run in this process, by what they do: a host that gave up on one and sends it again finds it here. */
export class EqualCalls {
	readonly #running = new Map<string, Running>();

	/** The same for the same tool, arguments and principal. */
	keyOf(call: { readonly principal: string; readonly tool: string; readonly arguments: JsonObject }): string {
		return hash('sha256', canonical([call.principal, call.tool, call.arguments]), 'base64url');
	}

	/** An equal call that runs and is not being stopped. */
	find(key: string): Running | undefined {
		const running = this.#running.get(key);
		const record = running?.task.record;
		const isGoingOn = record && !isTerminal(record.status) && record.cancelRequestedAtMs === null;
		return isGoingOn ? running : undefined;
	}

	add(key: string, running: Running): void {
		this.#running.set(key, running);
		void running.ended.finally(() => {
			if (this.#running.get(key) === running) this.#running.delete(key);
		});
	}
}

/** A digest that is the same for equal arguments in any order of keys. */
export function argumentsDigest(value: JsonValue): string {
	return hash('sha256', canonical(value), 'base64url');
}

function canonical(value: JsonValue): string {
	if (typeof value !== 'object' || value === null) return JSON.stringify(value);
	if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
	const entries = Object.entries(value as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1));
	return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(',')}}`;
}
