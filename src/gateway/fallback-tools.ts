import * as z from 'zod';
import type { TaskRecord } from '../backend/record.ts';
import { durationText } from '../engine/progress.ts';
import { isHoldfastError } from '../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';
import type { CallToolResult, ServerContext } from '../server/sdk.ts';
import type { Tasks } from '../server/tasks.ts';
import type { HandOver } from '../server/tool-options.ts';

const TASK_ID = { type: 'string', description: 'The task_id that the first answer gave.' };

const ACTIONS = ['accept', 'decline', 'cancel'];

/** The tools with which a model follows a call that its host could not wait for. */
export const FALLBACK_TOOLS: readonly JsonObject[] = [
	{
		name: 'await_task',
		title: 'Wait for a running tool call',
		description:
			'Waits for the result of a tool call that is still running, and returns it. Call it with the task_id that the tool call answered with; call it again when it says that the call is still running.',
		inputSchema: { type: 'object', properties: { task_id: TASK_ID }, required: ['task_id'] },
		annotations: { readOnlyHint: true, openWorldHint: false },
	},
	{
		name: 'answer_task',
		title: 'Answer a question of a running tool call',
		description:
			'Answers the question that a running tool call has. Ask the user first; never invent an answer. Then waits for the result like await_task.',
		inputSchema: {
			type: 'object',
			properties: {
				task_id: TASK_ID,
				key: { type: 'string', description: 'The key of the question; may be left out when there is one.' },
				action: { type: 'string', enum: ACTIONS, description: 'Default: accept.' },
				content: { type: 'object', description: "The values that the question's schema asks for." },
			},
			required: ['task_id'],
		},
		annotations: { readOnlyHint: false, idempotentHint: true, openWorldHint: false },
	},
	{
		name: 'cancel_task',
		title: 'Stop a running tool call',
		description: 'Stops a tool call that is still running.',
		inputSchema: { type: 'object', properties: { task_id: TASK_ID }, required: ['task_id'] },
		annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
	},
];

/** Whether a host that calls this means the gateway itself. */
export function isFallbackTool(name: string): boolean {
	return FALLBACK_TOOLS.some((tool) => tool['name'] === name);
}

/** Answers a call of one of the fallback tools; undefined when it is none. */
export async function callFallbackTool(
	tasks: Tasks,
	name: string,
	args: JsonObject,
	ctx: ServerContext,
	handOver: HandOver,
): Promise<CallToolResult | undefined> {
	if (!isFallbackTool(name)) return undefined;
	const taskId = args['task_id'];
	if (typeof taskId !== 'string') return text('task_id must be the string that the first answer gave.', true);
	try {
		if (name === 'cancel_task') {
			const wasOpen = await tasks.cancel(taskId, tasks.principal(ctx));
			return text(
				wasOpen
					? 'The tool call is being stopped.'
					: 'The tool call has ended already; await_task gives what it ended with.',
			);
		}
		if (name === 'answer_task') {
			const problem = await answer(tasks, taskId, args, ctx);
			if (problem !== undefined) return text(problem, true);
		}
		return await tasks.wait(taskId, ctx, { handOver });
	} catch (error) {
		if (!isHoldfastError(error, 'TASK_NOT_FOUND')) throw error;
		return text(
			'There is no such task: the task_id is wrong, or its result was kept long enough and is gone.',
			true,
		);
	}
}

/** What is wrong with an answer; undefined when it was taken. */
async function answer(
	tasks: Tasks,
	taskId: string,
	args: JsonObject,
	ctx: ServerContext,
): Promise<string | undefined> {
	const { openInputs } = await tasks.get(taskId, tasks.principal(ctx));
	const open = Object.keys(openInputs);
	const key = args['key'] ?? (open.length === 1 ? open[0] : undefined);
	if (open.length === 0) return undefined;
	if (typeof key !== 'string' || !open.includes(key))
		return `key must be one of the open questions: ${open.join(', ')}`;
	const { action = 'accept', content = {} } = args;
	if (!ACTIONS.some((known) => known === action)) return `action must be one of: ${ACTIONS.join(', ')}`;
	const schema = openInputs[key]?.request.params?.['requestedSchema'];
	const isForm = action === 'accept' && isJsonObject(schema);
	// Wrong values would end the call that has asked, and with it what was done so far.
	const problem = isForm ? problemOf(content, schema) : undefined;
	if (problem !== undefined)
		return `content is not what the question asks for:\n${problem}\nNothing was answered; call answer_task again.`;
	const response = { action, ...(isForm && { content }) };
	await tasks.update(taskId, { [key]: response }, tasks.principal(ctx));
	return undefined;
}

/** What is wrong with the values of a form; undefined when nothing is, or when its schema cannot be read. */
function problemOf(content: JsonValue, schema: JsonObject): string | undefined {
	let form: z.ZodType;
	try {
		form = z.fromJSONSchema(schema);
	} catch {
		// The server looks at the values itself.
		return undefined;
	}
	const { error } = form.safeParse(content);
	return error && z.prettifyError(error);
}

/** What a model is told when its host waits no longer: what runs, since when, and what to do. */
export function handOverText(record: TaskRecord, nowMs: number): CallToolResult {
	const { taskId, tool, statusMessage, openInputs } = record;
	const questions = Object.entries(openInputs);
	const since = durationText(nowMs - record.createdAtMs);
	const head =
		questions.length > 0
			? `"${tool}" has been running for ${since} and has a question, without whose answer it does not go on.`
			: `"${tool}" has been running for ${since} and goes on. This is not an error, and nothing was lost.`;
	const lines = [
		head,
		`task_id: ${taskId}`,
		...(statusMessage !== null && questions.length === 0 ? [`Status: ${statusMessage}`] : []),
		...questions.map(([key, { request }]) => `Question ${key}: ${JSON.stringify(request.params ?? {})}`),
		questions.length > 0
			? 'Ask the user, then call answer_task with the task_id, the key and the content. Do not invent an answer, and do not start the tool again.'
			: 'Call await_task with this task_id to get the result. Do not start the tool again: that would do the work twice. cancel_task stops it.',
	];
	return {
		content: [{ type: 'text', text: lines.join('\n') }],
		_meta: { 'holdfast/task': { taskId, status: isTerminal(record.status) ? 'ended' : record.status } },
	};
}

function text(words: string, isError = false): CallToolResult {
	return { content: [{ type: 'text', text: words }], ...(isError && { isError }) };
}
