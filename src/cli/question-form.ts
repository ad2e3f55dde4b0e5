import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import { type FormField, fieldsOf, readTyped } from './form-field.ts';
import { openPage } from './open-page.ts';
import type { Choice, Prompts } from './prompts.ts';

/** Does one prompt, again if need be, when the person pressed Ctrl-C in it and came back. */
export type Guard = <T>(prompt: () => Promise<T>) => Promise<T>;

const DECLINE = { action: 'decline' } as const;

/** Asks an `elicitation/create` of a server at the terminal. */
export function askElicitation(
	prompts: Prompts,
	guard: Guard,
	request: InputRequest,
	asker: string,
): Promise<InputResponse> {
	const { message, mode, url } = request.params ?? {};
	const words = typeof message === 'string' ? message : '';
	return mode === 'url' && typeof url === 'string'
		? askUrl(prompts, guard, asker, words, url)
		: askForm(prompts, guard, asker, words, request.params?.['requestedSchema']);
}

async function askForm(
	prompts: Prompts,
	guard: Guard,
	asker: string,
	message: string,
	schema: unknown,
): Promise<InputResponse> {
	const fields = fieldsOf(schema);
	prompts.show(`${asker} asks`, message);
	if (fields.length === 0) {
		const choices: Choice<boolean>[] = [
			{ value: true, label: 'Accept' },
			{ value: false, label: 'Decline' },
		];
		const accepted = await guard(() => prompts.choose('Your answer', choices, undefined));
		return accepted ? { action: 'accept', content: {} } : DECLINE;
	}
	let content: JsonObject = {};
	for (;;) {
		const entries: (readonly [string, JsonValue])[] = [];
		for (const field of fields) {
			const before = Object.hasOwn(content, field.name) ? content[field.name] : field.initial;
			const value = await guard(() => askField(prompts, field, before));
			if (value !== undefined) entries.push([field.name, value]);
		}
		content = Object.fromEntries(entries);
		// One answer was in view when it was confirmed; of several, the person sees what is sent.
		const next = fields.length === 1 ? 'send' : await guard(() => review(prompts, fields, content));
		if (next === 'send') return { action: 'accept', content };
		if (next === 'decline') return DECLINE;
	}
}

function review(
	prompts: Prompts,
	fields: readonly FormField[],
	content: JsonObject,
): Promise<'send' | 'change' | 'decline'> {
	const lines = fields.map(({ name, options }) => {
		const value = Object.hasOwn(content, name) ? content[name] : undefined;
		return `${name}: ${value === undefined ? '(left out)' : shown(value, options)}`;
	});
	prompts.show('Your answer', lines.join('\n'));
	return prompts.choose(
		'Send it?',
		[
			{ value: 'send', label: 'Send' },
			{ value: 'change', label: 'Change' },
			{ value: 'decline', label: 'Decline' },
		],
		'send',
	);
}

function shown(value: JsonValue, options: FormField['options']): string {
	if (Array.isArray(value)) return value.map((part) => shown(part, options)).join(', ');
	const option = options.find((candidate) => candidate.value === value);
	return option?.label ?? (typeof value === 'string' ? value : JSON.stringify(value));
}

async function askField(
	prompts: Prompts,
	field: FormField,
	before: JsonValue | undefined,
): Promise<JsonValue | undefined> {
	const { label, kind, options, isRequired, check } = field;
	const leftOut: Choice<JsonValue | undefined>[] = isRequired
		? []
		: [{ value: undefined, label: '(leave it out)' }];
	switch (kind) {
		case 'yes-no': {
			const answers = [
				{ value: true, label: 'Yes' },
				{ value: false, label: 'No' },
			];
			// Without a suggestion, Enter alone must not agree to anything.
			const initial = before ?? (isRequired ? false : undefined);
			return prompts.choose(label, [...leftOut, ...answers], initial);
		}
		case 'one-of':
			return prompts.choose(label, [...leftOut, ...options], before);
		case 'some-of': {
			const chosen = await prompts.chooseSome(
				label,
				options,
				Array.isArray(before) ? before : [],
				(values) => (values.length === 0 && !isRequired ? undefined : check([...values])),
			);
			return chosen.length === 0 && !isRequired ? undefined : [...chosen];
		}
		case 'text':
		case 'number':
		case 'json': {
			const initial =
				before === undefined ? '' : typeof before === 'string' ? before : JSON.stringify(before);
			const typed = await prompts.text(label, initial, (text) => {
				try {
					return check(readTyped(field, text));
				} catch {
					return 'It must be JSON.';
				}
			});
			return readTyped(field, typed);
		}
	}
}

async function askUrl(
	prompts: Prompts,
	guard: Guard,
	asker: string,
	message: string,
	url: string,
): Promise<InputResponse> {
	const page = URL.canParse(url) ? new URL(url) : undefined;
	const isWeb = page !== undefined && /^https?:$/.test(page.protocol);
	const site = page === undefined ? '' : `\n\nIt is a page of ${page.host || page.protocol}`;
	prompts.show(`${asker} asks you to open a page`, `${message}\n\n${url}${site}`);
	const choices: Choice<'open' | 'myself' | 'decline'>[] = [
		...(isWeb ? [{ value: 'open' as const, label: 'Yes, open it in the browser' }] : []),
		{ value: 'myself', label: 'Yes, I open it myself' },
		{ value: 'decline', label: 'No' },
	];
	const answer = await guard(() => prompts.choose('Do you want to?', choices, isWeb ? 'open' : 'decline'));
	if (answer === 'decline') return DECLINE;
	if (answer === 'open' && page) await openPage(page);
	return { action: 'accept' };
}
