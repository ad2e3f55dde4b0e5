/** F15: a capability that is half formed makes the other side silently give up on tasks. */
import { afterEach, describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/protocol/json.ts';
import { type Fixture, overHttp, overStdio } from '../support/fixture-server.ts';
import { field, HttpSession, type LegacyWire, StdioConnection } from '../support/legacy-wire.ts';

let fixture: Fixture;
afterEach(() => fixture.close());

async function connect(route: string, capabilities: JsonObject): Promise<LegacyWire> {
	if (route === 'HTTP') {
		fixture = await overHttp();
		return HttpSession.open(fixture.url ?? '', { capabilities });
	}
	const pipe = await overStdio();
	fixture = pipe;
	return StdioConnection.open(pipe.pair, { capabilities });
}

const EXTENSION = 'io.modelcontextprotocol/tasks';
const HALF_FORMED: readonly JsonValue[] = [
	{},
	{ requests: {} },
	{ requests: { tools: {} } },
	{ requests: { tools: { call: {} } } },
	{ requests: null },
	null,
	true,
];

describe.each(['HTTP', 'stdio'])('F15: half-formed capabilities over %s', (route) => {
	it.each(HALF_FORMED.map((tasks) => [JSON.stringify(tasks), tasks] as const))(
		'F15: a client that declares tasks as %s gets its task',
		async (_text, tasks) => {
			const wire = await connect(route, { tasks, extensions: { [EXTENSION]: {} } });
			const { taskId } = await wire.start('structured');
			const { result } = await wire.request('tasks/result', { taskId });
			expect(result).toMatchObject({ structuredContent: { answer: 42 } });
		},
	);

	it.each([
		['{}', {}],
		['true', true],
		['form alone', { form: {} }],
		['null for what it has not', { form: {}, url: null }],
	] as const)('F15: a client that declares elicitation as %s is asked', async (_text, elicitation) => {
		const wire = await connect(route, { elicitation, sampling: null });
		const { result } = await wire.call('asking', { keys: ['red'] });
		expect(wire.asked).toHaveLength(1);
		expect(field(result, 'content', '0', 'text')).toContain('red?');
	});

	it.each([
		['null', null],
		['false', false],
	] as const)('F15: a client that declares elicitation as %s is not', async (_text, elicitation) => {
		const wire = await connect(route, { elicitation });
		const { result } = await wire.call('asking', { keys: ['red'] });
		expect(wire.asked).toEqual([]);
		expect(field(result, 'content', '0', 'text')).toContain('cannot be asked');
	});

	it('F15: the server itself says the whole form', async () => {
		const wire = await connect(route, {});
		expect(field(wire.received[0], 'result', 'capabilities', 'tasks')).toEqual({
			list: {},
			cancel: {},
			requests: { tools: { call: {} } },
		});
	});
});
