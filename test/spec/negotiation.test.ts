/** Who declares what, on which request, and what follows from it. */
import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { type Fixture, ROUTES } from '../support/fixture-server.ts';
import { begin, call, withoutMeta } from '../support/steps.ts';
import { ASKABLE, META, TASKS, type WireOptions } from '../support/wire.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const all = { principal: null, statuses: null, limit: 100, cursor: null } as const;
const EARLIER = '2025-11-25';

/** A request as a client of the earlier protocol version sends it: no envelope, other headers. */
const earlier = (version: string | undefined): WireOptions => ({
	meta: { [META.version]: undefined, [META.client]: undefined, [META.capabilities]: undefined },
	headers: { 'mcp-method': undefined, 'mcp-name': undefined, 'mcp-protocol-version': version },
});

const capabilities = (declared: Record<string, unknown>): WireOptions => ({
	meta: { [META.capabilities]: { ...ASKABLE, ...declared } },
});

describe.each(ROUTES)('negotiation through %s', (_name, open) => {
	test.each([true, false])(
		'T01: the server advertises exactly {}, to a client that declares it: %s',
		async (declare) => {
			fixture = await open();
			const { result } = await fixture.wire.request('server/discover', {}, { declare });
			const advertised = result?.['capabilities'] as JsonObject;
			expect(advertised['extensions']).toEqual({ [TASKS]: {} });
		},
	);

	test('T01: an extension object with settings in it declares too', async () => {
		fixture = await open();
		const options = capabilities({ extensions: { [TASKS]: { later: true }, 'example.com/other': {} } });
		expect((await call(fixture.wire, 'structured', {}, options)).result).toMatchObject({
			resultType: 'task',
		});
	});

	test('T02: every request speaks for itself, whatever the one before declared', async () => {
		fixture = await open();
		const { wire } = fixture;
		for (const declare of [true, false, true, false]) {
			const { result } = await call(wire, 'structured', {}, { declare });
			expect(result?.['resultType']).toBe(declare ? 'task' : 'complete');
		}
		expect((await call(wire, 'structured', {}, { declare: false })).result).toMatchObject({
			structuredContent: { answer: 42 },
		});
	});

	test('T02: many requests at once do not lend each other their declaration', async () => {
		fixture = await open();
		const { wire } = fixture;
		const declared = Array.from({ length: 20 }, (_value, index) => index % 2 === 0);
		const answers = await Promise.all(declared.map((declare) => call(wire, 'structured', {}, { declare })));
		expect(answers.map(({ result }) => result?.['resultType'] === 'task')).toEqual(declared);
	});

	test.each<[string, Record<string, unknown>]>([
		['no extensions', {}],
		['none of this name', { extensions: { 'io.modelcontextprotocol/task': {}, tasks: {} } }],
		['another case', { extensions: { 'IO.ModelContextProtocol/Tasks': {} } }],
		['null', { extensions: { [TASKS]: null } }],
		['true', { extensions: { [TASKS]: true } }],
		['a list', { extensions: { [TASKS]: [] } }],
		['a list of names', { extensions: [TASKS] }],
		['an experimental one', { experimental: { [TASKS]: {} } }],
		['one beside the extensions', { [TASKS]: {} }],
	])('T02: %s is no declaration', async (_case, declared) => {
		fixture = await open();
		const answer = await call(fixture.wire, 'structured', {}, capabilities(declared));
		if (answer.error) expect(answer.error.code).toBe(-32602);
		else expect(answer.result).toMatchObject({ resultType: 'complete', structuredContent: { answer: 42 } });
	});

	test('T04: a refused call leaves nothing behind, and the same call with the declaration is a task', async () => {
		fixture = await open();
		const refused = await call(fixture.wire, 'required', {}, { declare: false });
		expect(refused.result).toBeUndefined();
		expect((await fixture.backend.store.list(all)).records).toEqual([]);
		await begin(fixture.wire, 'required');
	});

	test('T05: a tool that forbids tasks makes none, and one that needs no asking makes one unasked', async () => {
		fixture = await open();
		const { wire } = fixture;
		const asking = { name: 'forbidden', arguments: {}, task: { ttl: 60_000 } };
		expect((await wire.request('tools/call', asking)).result).toMatchObject({
			resultType: 'complete',
			content: [{ type: 'text', text: 'forbidden' }],
		});
		const made = await wire.request('tools/call', { name: 'structured', arguments: {}, task: { ttl: 1 } });
		const unasked = await call(wire, 'structured');
		for (const { result } of [made, unasked]) expect(result).toMatchObject({ resultType: 'task' });
		expect(made.result?.['ttlMs']).toBe(unasked.result?.['ttlMs']);
	});

	test('T06: the capability of the earlier protocol version does not count', async () => {
		fixture = await open();
		const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
		const { result } = await call(fixture.wire, 'structured', {}, capabilities({ tasks }));
		expect(result).toMatchObject({ resultType: 'complete', structuredContent: { answer: 42 } });
		const required = await call(fixture.wire, 'required', {}, capabilities({ tasks }));
		expect(required.error?.code).toBe(-32021);
	});

	test('T06: under the earlier protocol version the extension is neither advertised nor in force', async () => {
		fixture = await open();
		const { wire } = fixture;
		const hello = {
			protocolVersion: EARLIER,
			capabilities: { extensions: { [TASKS]: {} }, tasks: {} },
			clientInfo: { name: 'wire', version: '1' },
		};
		const { result } = await wire.request('initialize', hello, earlier(undefined));
		expect(result?.['protocolVersion']).toBe(EARLIER);
		const advertised = result?.['capabilities'] as JsonObject;
		expect(advertised).not.toHaveProperty('extensions');
		await wire.notify('notifications/initialized');
		const called = await call(wire, 'structured', {}, earlier(EARLIER));
		expect(called.result).toMatchObject({ structuredContent: { answer: 42 } });
		expect(called.result).not.toHaveProperty('taskId');
		const update = { taskId: 'x', inputResponses: {} };
		expect((await wire.request('tasks/update', update, earlier(EARLIER))).error?.code).toBe(-32601);
	});

	test('T06: an envelope of the earlier protocol version declares nothing', async () => {
		fixture = await open();
		const options: WireOptions = {
			meta: { [META.version]: EARLIER },
			headers: { 'mcp-protocol-version': EARLIER },
		};
		const { result } = await call(fixture.wire, 'structured', {}, options);
		expect(withoutMeta(result ?? {})).not.toHaveProperty('taskId');
	});
});
