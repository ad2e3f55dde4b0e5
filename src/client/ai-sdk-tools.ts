import { type AgentAnswer, NOT_THE_USER } from './agent-answer.ts';
import type { AgentTools } from './agent-tools.ts';
import { type AnswerPart, plainText } from './answer-parts.ts';
import type { BackgroundEnd } from './background-tasks.ts';

/** A tool as the AI SDK takes it; `SCHEMA` is what its `jsonSchema()` returns. */
export interface AiSdkTool<SCHEMA> {
	type: 'dynamic';
	description: string;
	inputSchema: SCHEMA;
	execute: (input: unknown, options: AiSdkCallOptions) => Promise<AgentAnswer>;
	toModelOutput: (options: { output: unknown }) => AiSdkOutput;
}

/** What the AI SDK says of a call. */
export interface AiSdkCallOptions {
	toolCallId: string;
	abortSignal?: AbortSignal | undefined;
}

/** What of an answer goes to the model. */
export type AiSdkOutput =
	| { type: 'text'; value: string }
	| { type: 'error-text'; value: string }
	| { type: 'content'; value: AiSdkPart[] };

/** A text or a file. */
export type AiSdkPart =
	| { type: 'text'; text: string }
	| { type: 'file'; data: { type: 'data'; data: string }; mediaType: string };

/** A message about a call that ended in the background. */
export interface AiSdkUserMessage {
	role: 'user';
	content: AiSdkPart[];
}

/**
 * The tools of an {@link AgentTools} for `generateText`, `streamText` and agents of the AI SDK 7. Takes the SDK's
 * `jsonSchema` as an argument, so that holdfast does not depend on the SDK:
 * `aiSdkTools(agentTools, jsonSchema)`. Call it again after `agentTools.refresh()`.
 *
 * The SDK's `abortSignal` stops waiting; what becomes of the task says the option `onAbort` of the agent tools. What
 * a tool returned, as `output` of the SDK's tool results, is an {@link AgentAnswer}.
 */
export function aiSdkTools<SCHEMA>(
	agentTools: AgentTools,
	jsonSchema: (schema: { readonly type: 'object' }) => SCHEMA,
): Record<string, AiSdkTool<SCHEMA>> {
	return Object.fromEntries(
		agentTools.tools.map(({ name, description, inputSchema }) => [
			name,
			{
				type: 'dynamic',
				description,
				inputSchema: jsonSchema(inputSchema),
				execute: (input, { toolCallId, abortSignal }) =>
					agentTools.call({ id: toolCallId, name, arguments: input, signal: abortSignal }),
				toModelOutput: ({ output }) => toOutput(output as AgentAnswer),
			},
		]),
	);
}

/**
 * The message for an end that nobody awaited, for the `messages` of the next generation. It has the role `user`,
 * because a tool result must answer a tool call and that one was answered with the handle; its first line says so.
 */
export function aiSdkEndMessage(agentTools: AgentTools, end: BackgroundEnd): AiSdkUserMessage {
	const { parts } = agentTools.endAnswer(end);
	return { role: 'user', content: [{ type: 'text', text: NOT_THE_USER }, ...parts.map(toPart)] };
}

function toOutput({ parts, isError }: AgentAnswer): AiSdkOutput {
	if (isError) return { type: 'error-text', value: plainText(parts) };
	if (parts.every(({ type }) => type === 'text')) return { type: 'text', value: plainText(parts) };
	return { type: 'content', value: parts.map(toPart) };
}

function toPart(part: AnswerPart): AiSdkPart {
	if (part.type === 'text') return { type: 'text', text: part.text };
	return { type: 'file', data: { type: 'data', data: part.data }, mediaType: part.mediaType };
}
