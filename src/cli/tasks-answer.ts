import { z } from 'zod';
import type { OpenInput } from '../backend/record.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';
import type { InputResponse } from '../protocol/task.ts';
import type { StoreOptions } from './arguments.ts';
import { EXIT_CODES, Failure, UsageError } from './failure.ts';
import { withOpenStore } from './open-store.ts';
import { summaryOf } from './task-view.ts';
import { plain, safeJson } from './terminal.ts';

/** Options of `holdfast tasks answer`. */
export interface AnswerOptions extends StoreOptions {
	/** The form's values as JSON; true where none were given. */
	readonly accept?: string | true;
	readonly decline?: boolean;
	readonly json?: boolean;
}

/** Answers one open question of a task, whoever it belongs to. */
export function answerTask(taskId: string, key: string, options: AnswerOptions): Promise<number> {
	if ((options.accept === undefined) === (options.decline !== true))
		throw new UsageError("Say either --accept '{…}' or --decline.");
	const content = parseContent(options.accept);
	return withOpenStore(options, async ({ writer, find }) => {
		const known = await find(taskId);
		const open = Object.hasOwn(known.openInputs, key) ? known.openInputs[key] : undefined;
		if (!open) throw notOpen(taskId, key, known);
		const responses = Object.fromEntries([[key, responseTo(key, open, content)]]);
		const { record, refusal } = await writer.apply(taskId, { type: 'answer', responses }, known);
		if (!record || refusal !== undefined) throw notOpen(taskId, key, record ?? known);
		const left = Object.keys(record.openInputs);
		process.stdout.write(
			options.json === true
				? `${safeJson(summaryOf(record))}\n`
				: `"${plain(key)}" of ${taskId} is answered${left.length === 0 ? '' : `; still open: ${plain(left.join(', '))}`}.\n`,
		);
		return EXIT_CODES.ok;
	});
}

/** The values after `--accept`; an empty object where none were given, undefined for `--decline`. */
function parseContent(accept: string | true | undefined): JsonObject | undefined {
	if (accept === undefined) return undefined;
	if (accept === true) return {};
	let content: unknown;
	try {
		content = JSON.parse(accept);
	} catch {
		content = undefined;
	}
	if (!isJsonObject(content))
		throw new UsageError(`--accept ${accept}: it must be a JSON object, such as '{"approved": true}'.`);
	return content;
}

function responseTo(key: string, { request }: OpenInput, content: JsonObject | undefined): InputResponse {
	if (request.method !== 'elicitation/create') {
		if (content) return content;
		throw new UsageError(
			`"${key}" asks for ${request.method}, which cannot be declined; give its result with --accept.`,
		);
	}
	if (!content) return { action: 'decline' };
	if (request.params?.['mode'] === 'url') return { action: 'accept' };
	checkAgainst(request.params?.['requestedSchema'], content);
	return { action: 'accept', content };
}

/** A tool trusts its form: an answer that does not fit it would only fail later, and for good. */
function checkAgainst(schema: unknown, content: JsonObject): void {
	if (!isJsonObject(schema)) return;
	let form: z.ZodType;
	try {
		form = z.fromJSONSchema(schema);
	} catch {
		return; // A schema that cannot be read is the tool's affair.
	}
	const checked = form.safeParse(content);
	if (checked.success) return;
	const problems = checked.error.issues.map(
		({ path, message }) => `${path.join('.') || 'the answer'}: ${message}`,
	);
	throw new UsageError(
		`The answer does not fit the form. ${problems.join('; ')}. The form: ${JSON.stringify(schema)}`,
	);
}

function notOpen(taskId: string, key: string, record: Parameters<typeof summaryOf>[0]): Failure {
	const open = Object.keys(record.openInputs);
	if (isTerminal(record.status))
		return new Failure(`The task ${taskId} has already ended: it is ${record.status}.`);
	if (Object.hasOwn(record.inputResponses, key)) return new Failure(`"${key}" was answered before.`);
	return new Failure(
		`The task ${taskId} has no open question "${key}". ${open.length === 0 ? 'It has none at all.' : `Open: ${open.join(', ')}.`}`,
	);
}
