import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { Subscription } from '../../src/server/subscription.ts';
import { FakeClock, settle } from '../../src/testing/fake-clock.ts';
import { gate, MINUTE_MS, SECOND_MS, startRig, text, withStore } from '../support/engine-rig.ts';
import { overHttp, overStdio } from '../support/fixture-server.ts';
import { WireRefusal } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

const statusOf = ({ params }: JsonObject): unknown => isJsonObject(params) && params['status'];

async function subscribed(options: { readonly deaf?: boolean; readonly send?: () => Promise<void> } = {}) {
	const clock = new FakeClock();
	const backend = newBackend(clock);
	await backend.open();
	const done = gate();
	let failing = false;
	const rig = startRig({
		clock,
		backend,
		tools: { build: () => done.opened.then(() => text('built')) },
	});
	const taskId = await rig.begin('build');
	const other = rig.second({
		concurrency: 0,
		backend: {
			...withStore(backend, (store) => ({
				get: (id) => (failing ? Promise.reject(new Error('disk')) : store.get(id)),
			})),
			...(options.deaf && { signals: { publish: () => {}, subscribe: () => () => {} } }),
		},
	});
	const seen: JsonObject[] = [];
	const subscription = await Subscription.open(
		{ id: 'listen-1', taskIds: [taskId], principal: 'alice', engine: other.engine },
		async (notification) => {
			seen.push(notification);
			await options.send?.();
		},
	);
	subscription.start();
	await settle();
	return {
		rig,
		seen,
		done,
		subscription,
		fail: (now: boolean) => {
			failing = now;
		},
	};
}

describe('a subscription', () => {
	it('T52: begins with every task as it is and tells each change', async () => {
		const { seen, done } = await subscribed();
		done.open();
		await settle();
		expect(seen.map(statusOf)).toEqual(['working', 'completed']);
	});

	it('gives a slow reader the latest state instead of a backlog', async () => {
		const reader = gate();
		const { rig, seen, done } = await subscribed({ send: () => reader.opened });
		await rig.clock.advance(MINUTE_MS);
		done.open();
		await settle();
		expect(seen).toHaveLength(1);
		reader.open();
		await settle();
		expect(seen.map(statusOf)).toEqual(['working', 'completed']);
	});

	it('tells nothing after it was closed', async () => {
		const { seen, done, subscription } = await subscribed();
		subscription.close();
		done.open();
		await settle();
		expect(seen).toHaveLength(1);
	});

	it('tells a change also when this process was not told of it', async () => {
		const { rig, seen, done } = await subscribed({ deaf: true });
		done.open();
		await rig.clock.advance(5 * SECOND_MS);
		expect(seen.map(statusOf)).toEqual(['working', 'completed']);
	});

	it('tells a change also when it could not be read at first', async () => {
		const { rig, seen, done, fail } = await subscribed();
		fail(true);
		done.open();
		await settle();
		fail(false);
		await rig.clock.advance(5 * SECOND_MS);
		expect(seen.map(statusOf)).toEqual(['working', 'completed']);
	});
});

describe('listen streams', () => {
	it('are limited also when many are opened at once', async () => {
		const opening = gate();
		let slow = false;
		const backend = withStore(newBackend(), (store) => ({
			get: async (id) => {
				if (slow) await opening.opened;
				return store.get(id);
			},
		}));
		const fixture = await overHttp({ backend, listen: { maxListenStreams: 2 } });
		try {
			const made = await fixture.wire.request('tools/call', { name: 'slow', arguments: { gate: 'a' } });
			slow = true;
			const outcomes = Array.from({ length: 6 }, () =>
				fixture.wire.listen([made.result?.['taskId']]).then(
					() => 'open',
					(error: unknown) => (error instanceof WireRefusal ? 'refused' : error),
				),
			);
			// A request that is answered without the store has passed all those before it on its own way.
			await fixture.wire.request('server/discover');
			await fixture.wire.request('server/discover');
			opening.open();
			expect((await Promise.all(outcomes)).filter((outcome) => outcome === 'open')).toHaveLength(2);
		} finally {
			await fixture.close();
		}
	});

	it('that fail over stdio are answered with an internal error, and the connection goes on', async () => {
		let failing = false;
		const backend = withStore(newBackend(), (store) => ({
			get: (id) => (failing ? Promise.reject(new Error('disk at /var/lib')) : store.get(id)),
		}));
		const fixture = await overStdio({ backend });
		const made = await fixture.wire.request('tools/call', { name: 'slow', arguments: { gate: 'a' } });
		const taskId = made.result?.['taskId'] ?? '';
		failing = true;
		const refusal = await fixture.wire.listen([taskId]).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(WireRefusal);
		expect(JSON.stringify(refusal)).not.toContain('/var/lib');
		failing = false;
		expect((await fixture.wire.request('tasks/get', { taskId })).result).toMatchObject({ status: 'working' });
		await fixture.close();
	});
});
