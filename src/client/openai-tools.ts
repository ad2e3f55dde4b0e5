import { messageOf } from '../errors.ts';
import { type AgentAnswer, errorAnswer, NOT_THE_USER } from './agent-answer.ts';
import type { FunctionSchema } from './agent-tool.ts';
import type { AgentTools } from './agent-tools.ts';
import { type AnswerPart, fileNotice, plainText } from './answer-parts.ts';
import type { BackgroundEnd } from './background-tasks.ts';

/** A function tool, as chat completions take it. */
export interface OpenAiTool {
	readonly type: 'function';
	readonly function: {
		readonly name: string;
		readonly description: string;
		readonly parameters: FunctionSchema;
	};
}

/** A tool call of an assistant's message. One of another type than `function` is answered with an error. */
export interface OpenAiToolCall {
	readonly id: string;
	readonly type: string;
	readonly function?: { readonly name: string; readonly arguments: string };
}

/** The message that answers a tool call. */
export interface OpenAiToolMessage {
	role: 'tool';
	tool_call_id: string;
	content: string;
}

/** A message about a call that ended in the background. */
export interface OpenAiUserMessage {
	role: 'user';
	content: string | (OpenAiTextPart | OpenAiImagePart)[];
}

interface OpenAiTextPart {
	type: 'text';
	text: string;
}

interface OpenAiImagePart {
	type: 'image_url';
	image_url: { url: string };
}

/** Options of {@link OpenAiTools}. */
export interface OpenAiToolsOptions {
	/** Whether the model takes images; without, they are told in words. Default true. */
	readonly images?: boolean;
}

const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/**
 * The tools of an {@link AgentTools} for a loop around chat completions, of OpenAI or of anybody who speaks the same.
 * The shapes are plain; the package `openai` is not needed.
 */
export class OpenAiTools {
	readonly #agentTools: AgentTools;
	readonly #images: boolean;

	constructor(agentTools: AgentTools, options: OpenAiToolsOptions = {}) {
		this.#agentTools = agentTools;
		this.#images = options.images ?? true;
	}

	/** For the parameter `tools`. */
	get tools(): OpenAiTool[] {
		return this.#agentTools.tools.map(({ name, description, inputSchema }) => ({
			type: 'function',
			function: { name, description, parameters: inputSchema },
		}));
	}

	/**
	 * Runs a tool call and gives the message that answers it. What the model did wrong, and what went wrong, is in
	 * the message.
	 *
	 * @throws the reason of `options.signal`; CLOSED for a manager or client that was closed.
	 */
	async run(
		toolCall: OpenAiToolCall,
		options: { readonly signal?: AbortSignal } = {},
	): Promise<OpenAiToolMessage> {
		const answer = await this.#answer(toolCall, options.signal);
		const said = plainText(answer.parts);
		return {
			role: 'tool',
			tool_call_id: toolCall.id,
			content: answer.isError ? `Error: ${said}` : said,
		};
	}

	/**
	 * The message for an end that nobody awaited. It has the role `user`, because a tool message must answer a tool
	 * call and that one was answered with the handle; its first line says so.
	 */
	endMessage(end: BackgroundEnd): OpenAiUserMessage {
		const { parts } = this.#agentTools.endAnswer(end);
		const shown = parts.map((part) => this.#contentPart(part));
		const head = `${NOT_THE_USER}\n`;
		if (shown.every((part) => part.type === 'text'))
			return { role: 'user', content: head + shown.map(({ text }) => text).join('\n') };
		return { role: 'user', content: [{ type: 'text', text: head }, ...shown] };
	}

	async #answer({ id, type, function: called }: OpenAiToolCall, signal?: AbortSignal): Promise<AgentAnswer> {
		if (!called) return errorAnswer(`A tool call of type "${type}" is none of a function; call a function.`);
		const { name, arguments: json } = called;
		let given: unknown = {};
		try {
			// Some models say nothing where there is nothing to say.
			if (json.trim() !== '') given = JSON.parse(json);
		} catch (error) {
			return errorAnswer(
				`The arguments of the tool "${name}" are not JSON (${messageOf(error)}); give one JSON object.`,
			);
		}
		return this.#agentTools.call({ id, name, arguments: given, signal });
	}

	#contentPart(part: AnswerPart): OpenAiTextPart | OpenAiImagePart {
		if (part.type === 'text') return { type: 'text', text: part.text };
		const { data, mediaType } = part;
		if (!this.#images || !IMAGE_TYPES.includes(mediaType)) return { type: 'text', text: fileNotice(part) };
		return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } };
	}
}
