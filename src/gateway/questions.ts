import { createHash } from 'node:crypto';
import type { TaskContext } from '../engine/task-context.ts';
import { isHoldfastError } from '../errors.ts';
import { type CallToolResult, ProtocolError } from '../client/sdk.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';

/** The questions that an upstream has in the middle of one call. */
export class Questions {
	readonly #task: TaskContext;
	readonly #asked = new Map<string, number>();
	readonly #declined: string[] = [];

	constructor(task: TaskContext) {
		this.#task = task;
	}

	/**
	 * Asks the host that made the call. The same question in a call that is made again after a crash is answered
	 * from the record. A host that cannot be asked declines, and the result will say so.
	 *
	 * @throws ProtocolError for sampling and roots that the host did not offer, as a host itself would answer.
	 */
	async ask(request: InputRequest, upstreamKey: string | undefined): Promise<InputResponse> {
		try {
			return await this.#task.requireInput(upstreamKey ?? this.#keyOf(request), request);
		} catch (error) {
			if (!isHoldfastError(error, 'INPUT_UNAVAILABLE')) throw error;
			if (request.method !== 'elicitation/create')
				throw new ProtocolError(WIRE_CODES.methodNotFound, `The host does not offer ${request.method}`);
			const message = request.params?.['message'];
			this.#declined.push(typeof message === 'string' ? message : 'a question');
			return { action: 'decline' };
		}
	}

	/** The result, with a word to the model about what could not be asked. */
	annotate(result: CallToolResult): CallToolResult {
		if (this.#declined.length === 0) return result;
		const text = `While it ran, the tool asked: ${this.#declined
			.map((message) => `"${message}"`)
			.join(', ')}. This host cannot be asked, so the answer was "decline".`;
		return { ...result, content: [...result.content, { type: 'text', text }] };
	}

	/** The same for the same question at the same place of a call that is made again. */
	#keyOf(request: InputRequest): string {
		const digest = createHash('sha256').update(JSON.stringify(request)).digest('base64url').slice(0, 16);
		const count = this.#asked.get(digest) ?? 0;
		this.#asked.set(digest, count + 1);
		return `${digest}-${count}`;
	}
}
