/** A model that says what it was told to say, behind the HTTP API that OpenAI's client speaks. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import * as z from 'zod';

/** What the model says in a turn: words, or a call of a tool. */
export type Reply = string | { readonly tool: string; readonly arguments: object };

/** What is said to a conversation. Goes by the messages alone, as a model does. */
export type Script = (messages: readonly ChatCompletionMessageParam[]) => Reply | Promise<Reply>;

const request = z.object({ messages: z.array(z.custom<ChatCompletionMessageParam>()) });

export class ScriptedModel {
	readonly #server: Server;
	readonly #script: Script;
	#turns = 0;

	constructor(script: Script) {
		this.#script = script;
		this.#server = createServer(async (incoming, outgoing) => {
			const { messages } = request.parse(JSON.parse(await text(incoming)));
			outgoing.setHeader('content-type', 'application/json');
			outgoing.end(JSON.stringify(await this.#completion(messages)));
		});
	}

	/** How many turns the model has had: what an agent pays for. */
	get turns(): number {
		return this.#turns;
	}

	/** Listens on a free port; resolves with the base URL. */
	async start(): Promise<string> {
		await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
		const { port } = this.#server.address() as AddressInfo;
		return `http://127.0.0.1:${port}/v1`;
	}

	close(): void {
		this.#server.close();
		this.#server.closeAllConnections();
	}

	async #completion(messages: readonly ChatCompletionMessageParam[]): Promise<object> {
		this.#turns += 1;
		const reply = await this.#script(messages);
		const called = typeof reply === 'string' ? undefined : reply;
		const message = {
			...{ role: 'assistant', content: called ? null : reply, refusal: null },
			...(called && {
				tool_calls: [
					{
						...{ id: `call_${this.#turns}`, type: 'function' },
						function: { name: called.tool, arguments: JSON.stringify(called.arguments) },
					},
				],
			}),
		};
		return {
			...{ id: `completion_${this.#turns}`, object: 'chat.completion', created: 0, model: 'scripted' },
			choices: [{ index: 0, message, logprobs: null, finish_reason: called ? 'tool_calls' : 'stop' }],
		};
	}
}
