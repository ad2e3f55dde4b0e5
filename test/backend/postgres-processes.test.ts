import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Backend } from '../../src/backend/backend.ts';
import { encodeBatches } from '../../src/backend/postgres/batch.ts';
import { postgres, type PostgresOptions } from '../../src/backend/postgres/index.ts';
import { PART_LENGTH } from '../../src/backend/postgres/row.ts';
import type { TaskChange } from '../../src/backend/signals.ts';
import { ENDED, leased, newDetails, newRecord, revised, T0, TEST_LIMITS } from '../../src/testing/records.ts';
import { CutProxy } from '../support/cut-proxy.ts';
import { eventually } from '../field/harness.ts';
import { postgresService } from '../support/postgres.ts';

const service = await postgresService();

describe('batches', () => {
	test('are never longer than a notification may be, and leave nothing out', () => {
		const changes = Array.from({ length: 500 }, (_, n) => ({
			taskId: `${n}`.padStart(40, 'ä'),
			...{ revision: n, runnable: n % 2 === 0 },
		}));
		const batches = encodeBatches('me', changes);
		expect(Math.max(...batches.map((batch) => Buffer.byteLength(batch)))).toBeLessThan(8_000);
		const told = batches.flatMap((batch) => (JSON.parse(batch) as { changes: unknown[] }).changes);
		expect(told).toEqual(changes.map(({ taskId, revision, runnable }) => [taskId, revision, runnable]));
	});
});

describe.skipIf(typeof service === 'string')('several processes on one database', () => {
	if (typeof service === 'string') return;
	const { url, query, newBackend, newSchema } = service;
	afterAll(() => service.close());

	/** Backends on one schema, as of two processes. */
	async function processes(
		first: Partial<PostgresOptions>,
		second: Partial<PostgresOptions>,
	): Promise<readonly [Backend, Backend]> {
		const schema = newSchema();
		const backends = [
			await newBackend({ url, schema, ...first }),
			postgres({ url, schema, ...second }),
		] as const;
		for (const backend of backends) {
			await backend.open();
			onTestFinished(() => backend.close());
		}
		return backends;
	}

	test('hear of each other’s changes', async () => {
		const [here, there] = await processes({}, {});
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		const changes = Array.from({ length: 300 }, (_, n) => ({
			...{ taskId: `task ${n}`, revision: 1, runnable: true },
		}));
		for (const change of changes) here.signals.publish(change);
		await eventually(() => heard.length >= changes.length);
		expect(heard).toEqual(changes);
	});

	test('look for changes where notifications do not come through, and say so', async () => {
		const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
		onTestFinished(() => warn.mockRestore());
		// A notification stays within its database, as it stays at one side of a pooler.
		const deaf = {
			directUrl: Object.assign(new URL(url), { pathname: '/template1' }).href,
			pollIntervalMs: 50,
		};
		const [here, there] = await processes({}, deaf);
		expect(String(warn.mock.calls[0]?.[0])).toMatch(/NOTIFY does not come through.*every 50 ms.*directUrl/);
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		const change = { taskId: 'x', revision: 3, runnable: false };
		here.signals.publish(change);
		await eventually(() => heard.length > 0);
		await eventually(async () => (await query(`SELECT 1 WHERE pg_sleep(0.2) IS NOT NULL`)).length > 0);
		expect(heard).toEqual([change]);
	});

	test('catch up on what was told while the connection that hears was broken', async () => {
		const proxy = await CutProxy.to(Number(new URL(url).port));
		const past = Object.assign(new URL(url), { port: String(proxy.port) }).href;
		const [here, there] = await processes({}, { directUrl: past });
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		await proxy.close();
		const change = { taskId: 'x', revision: 3, runnable: false };
		here.signals.publish(change);
		const again = await CutProxy.to(Number(new URL(url).port), proxy.port);
		onTestFinished(() => again.close());
		await eventually(() => heard.length > 0);
		expect(heard).toContainEqual(change);
	});

	test('wait for a database that cannot be reached for a moment, and write nothing twice', async () => {
		const proxy = await CutProxy.to(Number(new URL(url).port));
		const past = Object.assign(new URL(url), { port: String(proxy.port) }).href;
		const [direct, through] = await processes({}, { url: past, directUrl: url });
		const record = newRecord();
		await direct.store.create(newDetails(record), TEST_LIMITS);
		// The answer is lost: the write is done, and the connection breaks before its process hears of it.
		proxy.loseAnswers();
		const replaced = through.store.replace(revised(record, leased('mine', T0 + 9)), 'full');
		const created = through.store.create(newDetails({ taskId: 'mine' }), TEST_LIMITS);
		await eventually(async () => (await direct.store.get(record.taskId))?.revision === 2);
		await eventually(async () => (await direct.store.get('mine')) !== undefined);
		proxy.breakAll();
		expect(await replaced).toBe(true);
		expect(await created).toEqual({ kind: 'created' });
		expect((await direct.store.get(record.taskId))?.revision).toBe(2);
		// Another one's write of the same revision is not taken for one's own.
		proxy.loseAnswers();
		const lost = through.store.replace(revised(record, leased('late', T0 + 9)), 'full');
		proxy.breakAll();
		expect(await lost).toBe(false);
		await proxy.close();
	});

	test('give up on a database that stays away', async () => {
		const proxy = await CutProxy.to(Number(new URL(url).port));
		const past = Object.assign(new URL(url), { port: String(proxy.port) }).href;
		const [, through] = await processes({}, { url: past, directUrl: url, patienceMs: 100 });
		await proxy.close();
		await expect(through.store.get('x')).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
	});

	test('read a result of many parts whole, and forget it whole', async () => {
		const [here, there] = await processes({}, {});
		const result = { text: 'ä😀"\\'.repeat(PART_LENGTH) };
		const record = newRecord();
		await here.store.create(newDetails(record), TEST_LIMITS);
		const end = revised(record, { ...ENDED, result });
		expect(await here.store.replace(end, 'full')).toBe(true);
		expect(await there.store.get(record.taskId)).toEqual(end);
		expect(await there.store.remove(record.taskId, 2)).toBe(true);
		expect(await here.store.get(record.taskId)).toBeUndefined();
	});

	test('count exactly what they created and ended at the same time', async () => {
		const [here, there] = await processes({}, {});
		const limits = { ...TEST_LIMITS, maxOpenPerPrincipal: 10 };
		const records = Array.from({ length: 10 }, () => newRecord({ principal: 'ada' }));
		await Promise.all(
			records.map((record, n) => (n % 2 ? here : there).store.create(newDetails(record), limits)),
		);
		const another = (): Promise<unknown> => here.store.create(newDetails({ principal: 'ada' }), limits);
		expect(await another()).toEqual({ kind: 'limit', scope: 'principal', limit: 10 });
		await Promise.all(
			records.map((record, n) => (n % 2 ? there : here).store.replace(revised(record, ENDED), 'full')),
		);
		for (let n = 0; n < 10; n++) expect(await another()).toEqual({ kind: 'created' });
		expect(await another()).toMatchObject({ kind: 'limit' });
	});
});
