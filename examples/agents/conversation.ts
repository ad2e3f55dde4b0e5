import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type {
	ChatCompletionMessageParam,
	ChatCompletionMessageToolCall,
} from 'openai/resources/chat/completions';

/** A conversation in a file, which is whole after a crash. */
export class Conversation {
	readonly #messages: ChatCompletionMessageParam[];
	readonly #file: string;

	constructor(file: string) {
		this.#file = file;
		this.#messages = existsSync(file)
			? (JSON.parse(readFileSync(file, 'utf8')) as ChatCompletionMessageParam[])
			: [];
	}

	get messages(): readonly ChatCompletionMessageParam[] {
		return this.#messages;
	}

	/** The tool calls of the last turn that have no message yet. */
	get unanswered(): readonly ChatCompletionMessageToolCall[] {
		const last = this.#messages.findLast((message) => message.role === 'assistant');
		const answered = this.#messages.flatMap((message) =>
			message.role === 'tool' ? [message.tool_call_id] : [],
		);
		return last?.tool_calls?.filter(({ id }) => !answered.includes(id)) ?? [];
	}

	/** Adds messages and saves. */
	add(messages: readonly ChatCompletionMessageParam[]): void {
		this.#messages.push(...messages);
		writeFileSync(`${this.#file}.new`, JSON.stringify(this.#messages, null, '\t'));
		renameSync(`${this.#file}.new`, this.#file);
	}

	/** Adds those messages that it does not have: an end is told again when a crash came before it was acknowledged. */
	addNew(messages: readonly ChatCompletionMessageParam[]): void {
		const known = new Set(this.#messages.map((message) => JSON.stringify(message)));
		this.add(messages.filter((message) => !known.has(JSON.stringify(message))));
	}
}
