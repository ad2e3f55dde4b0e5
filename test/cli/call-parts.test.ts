import { describe, expect, it } from 'vitest';
import { convertArguments, namedArgument } from '../../src/cli/call-arguments.ts';
import { fieldsOf, readTyped } from '../../src/cli/form-field.ts';
import { progressLine, readProgress } from '../../src/cli/progress-bar.ts';
import { textOfResult } from '../../src/cli/result-text.ts';
import { httpTarget, serverNameOf, type ServerTarget, withoutSecrets } from '../../src/cli/server-target.ts';

describe('arguments of a tool', () => {
	const schema = {
		type: 'object',
		properties: {
			...{
				text: { type: 'string' },
				n: { type: 'number' },
				whole: { type: 'integer' },
				yes: { type: 'boolean' },
			},
			...{
				tags: { type: 'array', items: { type: 'string' } },
				ids: { type: 'array', items: { type: 'integer' } },
			},
			...{ deep: { type: 'object' }, either: { type: ['number', 'string'] }, kind: { enum: ['1', '2'] } },
		},
	};
	const convert = (...words: string[]) =>
		convertArguments(
			words.reduce((before: ReturnType<typeof namedArgument>, word) => namedArgument(word, before), []),
			schema,
		);

	it('get the type that the schema gives them', () => {
		expect(convert('text=007', 'n=1.5', 'whole=3', 'yes=true', 'deep={"a":1}', 'kind=1')).toEqual({
			...{ text: '007', n: 1.5, whole: 3, yes: true, deep: { a: 1 }, kind: '1' },
		});
	});

	it('keep everything after the first =, also nothing', () => {
		expect(convert('text=a=b', 'other=')).toEqual({ text: 'a=b', other: '' });
	});

	it('are a list when they are given several times, or as one', () => {
		expect(convert('tags=a', 'tags=b', 'ids=1')).toEqual({ tags: ['a', 'b'], ids: [1] });
		expect(convert('tags=["a","b"]')).toEqual({ tags: ['a', 'b'] });
	});

	it('are what they look like where the schema does not say', () => {
		expect(convert('a=1', 'b=x', 'c=[1]', 'either=1', '__proto__=1')).toEqual(
			Object.fromEntries([
				['a', 1],
				['b', 'x'],
				['c', [1]],
				['either', 1],
				['__proto__', 1],
			]),
		);
	});

	it.each([
		['whole=1.5', /--arg whole=1\.5: the tool wants a whole number/],
		['yes=ja', /true or false/],
		['deep=1', /a JSON object/],
	])('say what the tool wants: %s', (word, message) => {
		expect(() => convert(word)).toThrow(message);
		expect(() => convert('text=a', 'text=b')).toThrow(/given 2 times, and the tool takes one/);
	});
});

describe('what is kept of a server', () => {
	const kept = (...command: string[]) => withoutSecrets({ kind: 'stdio', command, cwd: '/' });

	it('is the whole command where nothing in it looks like a secret', () => {
		const command = ['node', 'server.js', '--db', 'tasks.db', '--author=me', '--port', '80', '--stdio'];
		expect(kept(...command)).toMatchObject({ target: { command }, isWhole: true });
	});

	it.each([
		['--api-key=k', '--api-key=***'],
		['API_TOKEN=k', 'API_TOKEN=***'],
		['--url=postgres://u:p@h/d', '--url=***'],
		['postgres://u:p@h/d', '***'],
		['Authorization: Bearer k', 'Authorization: ***'],
		['sk-abc', '***'],
		['ghp_abc', '***'],
	])('leaves out %s', (word, left) => {
		expect(kept('x', word)).toEqual({
			target: { kind: 'stdio', command: ['x', left], cwd: '/' },
			isWhole: false,
		});
	});

	it('leaves out what follows the name of a secret', () => {
		expect(kept('x', '--password', 'k', '--db', 'f')).toMatchObject({
			target: { command: ['x', '--password', '***', '--db', 'f'] },
		});
		expect(kept('x', '--token', '--stdio')).toMatchObject({ isWhole: true });
	});

	it('names a server the same, whatever its secret is', () => {
		const name = (key: string): string =>
			serverNameOf({ kind: 'stdio', command: ['node', `--key-token=${key}`], cwd: '/a' });
		expect(name('1')).toBe(name('2'));
		expect(serverNameOf({ kind: 'stdio', command: ['node'], cwd: '/b' })).not.toBe(name('1'));
		const url: ServerTarget = httpTarget('https://host:8443/mcp?key=1#x');
		expect(serverNameOf(url)).toBe('https://host:8443/mcp');
	});
});

describe('progress in a status message', () => {
	const line = (words: string, elapsedMs = 0): string => progressLine(readProgress(words, elapsedMs));

	it('is a bar where there is a percentage', () => {
		expect(line('copying (50%, about 2 min left)')).toBe(
			'[############------------]  50%  copying  about 2 min left',
		);
		expect(line('copying (about 40 s left)')).toBe('copying  about 40 s left');
		expect(line('12.5% done')).toBe('[###---------------------]  12%  12.5% done');
	});

	it('is estimated from the time that went by where the server does not estimate', () => {
		expect(line('at 25 %', 60_000)).toMatch(/ about 3m left$/);
		expect(line('at 1 %', 60_000)).not.toMatch(/left/);
	});

	it('is the words alone otherwise', () => {
		expect(line('Running (see log)')).toBe('Running (see log)');
		expect(line('400% faster')).toBe('400% faster');
	});
});

describe('a form', () => {
	const field = (schema: object, required = true) => {
		const [only] = fieldsOf({
			type: 'object',
			properties: { x: schema },
			required: required ? ['x'] : [],
		});
		if (!only) throw new Error('there is no field');
		return only;
	};

	it.each([
		[{ type: 'string', format: 'email' }, 'x', /email/],
		[{ type: 'string', format: 'uri' }, 'x', /URL/],
		[{ type: 'string', format: 'date' }, '24.12.', /date/],
		[{ type: 'string', format: 'date-time' }, 'noon', /time/],
		[{ type: 'string', pattern: '^a+$' }, 'b', /pattern/],
		[{ type: 'number', minimum: 1 }, '0', /a number, at least 1/],
		[{ type: 'integer', maximum: 9 }, '10', /a whole number, at most 9/],
		[{ type: 'integer' }, 'ten', /a whole number/],
		[{ type: 'object', properties: {} }, '1', /JSON/],
	])('holds %j against what was typed', (schema, typed, message) => {
		const one = field(schema);
		expect(one.check(readTyped(one, typed))).toMatch(message);
		expect(one.check(undefined)).toBe('An answer is needed.');
		expect(field(schema, false).check(undefined)).toBeUndefined();
	});

	it('reads every way to write an enumeration', () => {
		const labels = (schema: object) => field(schema).options.map(({ label }) => label);
		expect(labels({ type: 'string', enum: ['a', 'b'] })).toEqual(['a', 'b']);
		expect(labels({ type: 'string', enum: ['a'], enumNames: ['A'] })).toEqual(['A']);
		expect(labels({ type: 'string', oneOf: [{ const: 'a', title: 'A' }] })).toEqual(['A']);
		expect(field({ type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] } })).toMatchObject({
			...{ kind: 'some-of', options: [{ value: 'a', label: 'A' }] },
		});
	});

	it('of nothing, or of nonsense, has no fields', () => {
		for (const schema of [undefined, 1, {}, { properties: [] }]) expect(fieldsOf(schema)).toEqual([]);
	});
});

describe('a result as text', () => {
	it('is its text, and a line about what cannot be shown', () => {
		const content = [
			{ type: 'text', text: 'one\ttab\nline \u001b[2J' },
			{ type: 'image', mimeType: 'image/png', data: 'AAAA' },
			{ type: 'resource_link', name: 'log', uri: 'file:///log' },
			{ type: 'resource', resource: { uri: 'x:', text: 'inside' } },
		];
		expect(textOfResult({ content })).toBe(
			'one\ttab\nline \\u001b[2J\n[image, image/png, 3 bytes; --json has it]\n[log: file:///log]\ninside\n',
		);
		expect(textOfResult({ structuredContent: { a: 1 }, content: [] })).toBe('{\n  "a": 1\n}\n');
	});
});
