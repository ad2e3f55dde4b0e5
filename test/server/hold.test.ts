import { afterEach, describe, expect, it } from 'vitest';
import { type Fixture, overHttp, overStdio, ROUTES } from '../support/fixture-server.ts';
import { eventually } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const all = { principal: null, statuses: null, limit: 10, cursor: null } as const;

describe.each(ROUTES)('a call that is held, through %s', (_name, open) => {
	it('is answered with the result when its task ends', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const answer = wire.request('tools/call', { name: 'slow', arguments: { gate: 'a' } }, { declare: false });
		await eventually(() => expect(control.log).toContain('slow a'));
		control.open('a', 'at last');
		expect((await answer).result).toMatchObject({
			resultType: 'complete',
			content: [{ type: 'text', text: 'at last' }],
		});
	});

	it('leaves no task when it ends at once', async () => {
		fixture = await open();
		const { wire, backend } = fixture;
		await wire.request('tools/call', { name: 'quick', arguments: {} }, { declare: false });
		expect((await backend.store.list(all)).records).toEqual([]);
	});

	it('brings the questions of its task to the client and the answers back', async () => {
		fixture = await open();
		const { wire } = fixture;
		const params = { name: 'asking', arguments: { keys: ['one', 'two'] } };
		const asked = await wire.request('tools/call', params, { declare: false });
		expect(asked.result?.['resultType']).toBe('input_required');
		expect(Object.keys(asked.result?.['inputRequests'] ?? {})).toEqual(['one', 'two']);
		const answered = await wire.request(
			'tools/call',
			{
				...params,
				requestState: asked.result?.['requestState'] ?? '',
				inputResponses: { one: { action: 'decline' }, two: { action: 'cancel' } },
			},
			{ declare: false },
		);
		expect(JSON.stringify(answered.result?.['content'])).toContain('decline');
	});

	it('is entered again after a thrown error also where tasks are forbidden', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		wire.request('tools/call', { name: 'forbidden_retrying', arguments: {} }).catch(() => {});
		await eventually(() => expect(control.log).toContain('entered 2'), 3_000);
	});
});

describe('a held call whose task cannot be read any more', () => {
	it('is answered with an internal error, and nothing is left unhandled', async () => {
		const backend = newBackend();
		let isBroken = false;
		let reads = 0;
		const get = backend.store.get.bind(backend.store);
		backend.store.get = (taskId) => {
			reads += 1;
			return isBroken ? Promise.reject(new Error('the disk is gone')) : get(taskId);
		};
		// Nobody runs the task, so that its progress has to be read.
		fixture = await overHttp({ backend, server: { concurrency: 0 } });
		const params = { name: 'slow', arguments: { gate: 'a' } };
		const answer = fixture.wire.request('tools/call', params, { declare: false, meta: { progressToken: 1 } });
		// One when the call begins, one when it is kept; then it is watched, and so is its progress.
		await eventually(() => expect(reads).toBe(4));
		isBroken = true;
		const { taskId, revision } = (await backend.store.list(all)).records[0] ?? { taskId: '', revision: 0 };
		backend.signals.publish({ taskId, revision, runnable: false });
		expect((await answer).error).toEqual({ code: -32603, message: 'Internal error' });
	});
});

describe('the client of a held call goes away', () => {
	const held = async (open: typeof overHttp | typeof overStdio) => {
		fixture = await open();
		const { wire, backend, control } = fixture;
		wire
			.request('tools/call', { name: 'slow', arguments: { gate: 'a' } }, { declare: false })
			.catch(() => {});
		await eventually(async () => expect((await backend.store.list(all)).records).toHaveLength(1));
		await wire.close();
		// Whatever follows from the close has happened once another client was served.
		return { backend, control };
	};

	it('T41: over HTTP, and the work goes on', async () => {
		const { backend, control } = await held(overHttp);
		control.open('a');
		await eventually(async () =>
			expect((await backend.store.list(all)).records[0]).toMatchObject({
				status: 'completed',
				cancelRequestedAtMs: null,
			}),
		);
	});

	it('T41: over stdio, and the work goes on', async () => {
		const { backend, control } = await held(overStdio);
		control.open('a');
		await eventually(async () =>
			expect((await backend.store.list(all)).records[0]?.status).toBe('completed'),
		);
		expect((await backend.store.list(all)).records[0]?.cancelRequestedAtMs).toBeNull();
	});
});
