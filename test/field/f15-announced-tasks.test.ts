/** F15: a server announces its Tasks in a half-formed way, and the host silently goes without them. */
import { afterEach, describe, expect, it } from 'vitest';
import type { CallRoute } from '../../src/client/index.ts';
import { type Json, legacyTask, type LegacyScript, playLegacy, words } from '../client/legacy-script.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

interface Played extends Omit<LegacyScript, 'on'> {
	/** What a `tools/call` with a task is answered with. */
	readonly refusesTasks?: { readonly code: number; readonly message: string };
}

/** A server that announces what it likes and ends each task at once, and a client of holdfast on it. */
async function play({ refusesTasks, ...script }: Played) {
	const ended = legacyTask({ status: 'completed' });
	const routes: CallRoute[] = [];
	const played = await playLegacy(
		{
			...script,
			on: {
				'tools/call': ({ task }) => {
					if (task === undefined) return { result: words('held') };
					return refusesTasks ? { error: refusesTasks } : { result: { task: ended } };
				},
				'tasks/get': () => ({ result: ended }),
				'tasks/result': () => ({ result: words('as a task') }),
			},
		},
		{ onRoute: (route) => routes.push(route) },
	);
	ends.push(played.close);
	const calls = (): Json[] => played.of('tools/call').map(({ params }) => params);
	return { tasks: played.tasks, calls, routes };
}

const HALF: readonly Json[] = [
	{},
	{ tools: {} },
	{ tools: { call: {} } },
	{ requests: {} },
	{ requests: { tools: {} } },
	{ list: {}, cancel: {} },
];

describe('a server of 2025-11-25', () => {
	it('that announces Tasks in full is asked for a task, and the host is told (F15)', async () => {
		const { tasks, calls, routes } = await play({
			capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
		});
		expect(await tasks.callTool({ name: 'work' })).toMatchObject(words('as a task'));
		expect(calls()).toEqual([{ name: 'work', task: { ttl: 86_400_000 } }]);
		expect(routes).toEqual([
			{
				tool: 'work',
				kind: 'legacy_task',
				why: 'the server announces Tasks in full, for this tool optional',
			},
		]);
	});

	it.each(HALF)(
		'that announces %j is asked for a task all the same, and the host is told (F15)',
		async (half) => {
			const { tasks, calls, routes } = await play({ capabilities: { tools: {}, tasks: half } });
			expect(await tasks.callTool({ name: 'work' })).toMatchObject(words('as a task'));
			expect(calls()).toHaveLength(1);
			expect(routes).toMatchObject([{ kind: 'legacy_task', why: expect.stringContaining('half-formed') }]);
		},
	);

	it.each([
		{ code: -32601, message: 'Tasks are not supported for tools/call' },
		{ code: -32603, message: 'Server does not support task creation (required for tools/call)' },
	])(
		'that announces half and then refuses with $code runs the call without a task, once (F15)',
		async (error) => {
			const { tasks, calls, routes } = await play({
				capabilities: { tools: {}, tasks: {} },
				refusesTasks: error,
			});
			expect(await tasks.callTool({ name: 'work' })).toMatchObject(words('held'));
			expect(calls()).toEqual([{ name: 'work', task: { ttl: 86_400_000 } }, { name: 'work' }]);
			expect(routes.map(({ kind }) => kind)).toEqual(['legacy_task', 'plain']);
			expect(routes[1]?.why).toContain(error.message);
		},
	);

	it('that announces Tasks in full is not called a second time when it refuses (F15)', async () => {
		const { tasks, calls } = await play({
			capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
			refusesTasks: { code: -32601, message: 'Not today' },
		});
		await expect(tasks.callTool({ name: 'work' })).rejects.toThrow('Not today');
		expect(calls()).toHaveLength(1);
	});

	it.each([
		[{}, 'forbidden', 'the server announces no Tasks'],
		[{ tasks: { requests: { tools: { call: {} } } } }, 'forbidden', 'the tool supports no tasks'],
		[{ tasks: {} }, 'sometimes', 'the tool supports no tasks'],
		[{ extensions: { 'io.modelcontextprotocol/tasks': {} } }, 'optional', 'the server announces no Tasks'],
	])(
		'with the capabilities %j and a tool that says %s gets a plain call, and the host is told why (F15)',
		async (capabilities, taskSupport, why) => {
			const { tasks, calls, routes } = await play({
				capabilities: { tools: {}, ...capabilities },
				taskSupport,
			});
			expect(await tasks.callTool({ name: 'work' })).toMatchObject(words('held'));
			expect(calls()).toEqual([{ name: 'work' }]);
			expect(routes).toEqual([{ tool: 'work', kind: 'plain', why }]);
		},
	);

	it('that announces null is turned away loudly by the SDK, before holdfast sees it (F15)', async () => {
		await expect(play({ capabilities: { tools: {}, tasks: null } })).rejects.toThrow(
			/Invalid result for initialize[\s\S]*"tasks"[\s\S]*received null/,
		);
	});
});

describe('a server of 2025-06-18', () => {
	it('gets a plain call whatever it announces, and the host is told why (F15)', async () => {
		const { tasks, routes } = await play({
			protocolVersion: '2025-06-18',
			capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
		});
		expect(await tasks.callTool({ name: 'work' })).toMatchObject(words('held'));
		expect(routes).toEqual([
			{ tool: 'work', kind: 'plain', why: 'the server speaks 2025-06-18, which has no Tasks' },
		]);
	});
});
