import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Backend } from '../../src/backend/backend.ts';
import { redis, type RedisOptions } from '../../src/backend/redis/index.ts';
import type { TaskChange } from '../../src/backend/signals.ts';
import {
	ALL,
	ENDED,
	leased,
	newDetails,
	newRecord,
	revised,
	T0,
	TEST_LIMITS,
} from '../../src/testing/records.ts';
import { eventually } from '../field/harness.ts';
import { CutProxy } from '../support/cut-proxy.ts';
import { OwnRedis } from '../support/own-redis.ts';
import { redisService } from '../support/redis.ts';

const service = await redisService();

describe.skipIf(typeof service === 'string')('several processes on one Redis', () => {
	if (typeof service === 'string') return;
	const { url, client, newBackend, newPrefix } = service;
	const port = Number(new URL(url).port || 6379);
	afterAll(() => service.close());

	/** Backends on one prefix, as of two processes. */
	async function processes(
		first: Partial<RedisOptions>,
		second: Partial<RedisOptions>,
	): Promise<readonly [Backend, Backend]> {
		const prefix = newPrefix();
		const backends = [newBackend({ prefix, ...first }), newBackend({ prefix, ...second })] as const;
		for (const backend of backends) {
			await backend.open();
			onTestFinished(() => backend.close());
		}
		return backends;
	}

	/** A way to the server that can be cut, and the address that leads through it. */
	async function proxied(): Promise<readonly [CutProxy, string]> {
		const proxy = await CutProxy.to(port);
		return [proxy, Object.assign(new URL(url), { port: String(proxy.port) }).href];
	}

	test('hear of each other’s changes', async () => {
		const [here, there] = await processes({}, {});
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		const changes = Array.from({ length: 300 }, (_, n) => ({
			...{ taskId: `task ${n}`, revision: 1, runnable: n % 2 === 0 },
		}));
		for (const change of changes) here.signals.publish(change);
		await eventually(() => heard.length >= changes.length);
		expect(heard).toEqual(changes);
	});

	test('pass over what somebody else wrote to the stream', async () => {
		const prefix = newPrefix();
		const [here, there] = await processes({ prefix }, { prefix });
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		for (const text of ['{', '1', '[]'])
			await client.xadd(`{${prefix}}:changes`, '*', 'by', 'x', 'changes', text);
		await client.xadd(`{${prefix}}:changes`, '*', 'only', 'this');
		const change = { taskId: 'x', revision: 1, runnable: true };
		here.signals.publish(change);
		await eventually(() => heard.length > 0);
		expect(heard).toEqual([change]);
	});

	test('catch up on what was told while the connection was broken', async () => {
		const [proxy, past] = await proxied();
		const [here, there] = await processes({}, { url: past });
		const heard: TaskChange[] = [];
		there.signals.subscribe((change) => void heard.push(change));
		await proxy.close();
		const change = { taskId: 'x', revision: 3, runnable: false };
		here.signals.publish(change);
		const again = await CutProxy.to(port, proxy.port);
		onTestFinished(() => again.close());
		await eventually(() => heard.length > 0);
		expect(heard).toEqual([change]);
	});

	test('wait for a server that cannot be reached for a moment, and write nothing twice', async () => {
		const [proxy, past] = await proxied();
		const [direct, through] = await processes({}, { url: past });
		const [record, gone] = [newRecord(), newRecord()];
		for (const each of [record, gone]) await direct.store.create(newDetails(each), TEST_LIMITS);
		// The answer is lost: the write is done, and the connection breaks before its process hears of it.
		proxy.loseAnswers();
		const end = revised(record, { ...leased('mine', T0 + 9), result: { a: 1 } });
		const replaced = through.store.replace(end, 'full');
		const created = through.store.create(newDetails({ taskId: 'mine', idempotencyKey: 'k' }), TEST_LIMITS);
		const removed = through.store.remove(gone.taskId, 1);
		await eventually(async () => (await direct.store.get(record.taskId))?.revision === 2);
		await eventually(async () => (await direct.store.get('mine')) !== undefined);
		await eventually(async () => (await direct.store.get(gone.taskId)) === undefined);
		proxy.breakAll();
		expect(await replaced).toBe(true);
		expect(await created).toEqual({ kind: 'created' });
		expect(await removed).toBe(true);
		expect(await direct.store.get(record.taskId)).toEqual(end);
		// Another one's write of the same revision is not taken for one's own.
		proxy.loseAnswers();
		const lost = through.store.replace(revised(record, leased('late', T0 + 9)), 'full');
		proxy.breakAll();
		expect(await lost).toBe(false);
		await proxy.close();
	});

	test('give up on a server that stays away', async () => {
		const [proxy, past] = await proxied();
		const [, through] = await processes({}, { url: past, patienceMs: 100 });
		await proxy.close();
		await expect(through.store.get('x')).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
	});

	test('go on where the server forgot the scripts', async () => {
		const [here] = await processes({}, {});
		await client.script('FLUSH');
		const record = newRecord();
		expect(await here.store.create(newDetails(record), TEST_LIMITS)).toEqual({ kind: 'created' });
	});

	test('count exactly what they created and ended at the same time', async () => {
		const [here, there] = await processes({}, {});
		const limits = { ...TEST_LIMITS, maxOpenPerPrincipal: 10 };
		const records = Array.from({ length: 20 }, () => newRecord({ principal: 'ada' }));
		const outcomes = await Promise.all(
			records.map((record, n) => (n % 2 ? here : there).store.create(newDetails(record), limits)),
		);
		expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(10);
		const open = records.filter((_, n) => outcomes[n]?.kind === 'created');
		await Promise.all(
			open.map((record, n) => (n % 2 ? there : here).store.replace(revised(record, ENDED), 'full')),
		);
		const another = (): Promise<unknown> => here.store.create(newDetails({ principal: 'ada' }), limits);
		for (let n = 0; n < 10; n++) expect(await another()).toEqual({ kind: 'created' });
		expect(await another()).toMatchObject({ kind: 'limit' });
	});

	test('are handed different tasks when they look at the same time', async () => {
		const [here, there] = await processes({}, {});
		for (let n = 0; n < 20; n++) await here.store.create(newDetails(), TEST_LIMITS);
		const [mine, theirs] = await Promise.all([here.dispatcher.take(T0, 10), there.dispatcher.take(T0, 10)]);
		expect(new Set([...mine, ...theirs]).size).toBe(20);
		expect(await here.dispatcher.take(T0 + 500, 10)).toEqual([]);
		// Nobody claimed them: they are handed out again.
		expect(await here.dispatcher.take(T0 + 1_000, 30)).toHaveLength(20);
	});

	test('list a few among many without holding up the server', async () => {
		const [here, there] = await processes({}, {});
		const few = [newRecord({ status: 'failed' }), newRecord({ status: 'input_required' })];
		for (const record of few) await here.store.create(newDetails(record), TEST_LIMITS);
		const others = Array.from({ length: 1_200 }, (_, n) => newDetails(n % 3 ? ENDED : {}));
		await Promise.all(others.map((details) => here.store.create(details, TEST_LIMITS)));
		const page = await there.store.list({ ...ALL, statuses: ['failed', 'input_required'] });
		expect(page).toEqual({ records: few.reverse(), nextCursor: null });
		let seen = 0;
		for (let cursor: string | null = null; ; ) {
			const next = await there.store.list({ ...ALL, cursor });
			seen += next.records.length;
			cursor = next.nextCursor;
			if (cursor === null) break;
		}
		expect(seen).toBe(1_202);
	});

	test('leave no key behind when all tasks are gone', async () => {
		const prefix = newPrefix();
		const [here] = await processes({ prefix }, { prefix });
		const record = newRecord({ idempotencyKey: 'k' });
		await here.store.create(newDetails(record, { steps: [{ name: 's', value: 1 }] }), TEST_LIMITS);
		await here.store.replace(revised(record, ENDED), 'full');
		await here.store.remove(record.taskId, 2);
		const keys = await client.keys(`{${prefix}}:*`);
		expect(keys.map((key) => key.slice(prefix.length + 3)).sort()).toEqual(['seq', 'version']);
	});

	test('refuse a prefix of another version', async () => {
		const prefix = newPrefix();
		await client.set(`{${prefix}}:version`, 7);
		await expect(newBackend({ prefix }).open()).rejects.toMatchObject({ code: 'STORE_NEWER' });
	});

	test('say at once that there is no server', async () => {
		const backend = redis({ url: 'redis://user:secret@127.0.0.1:1' });
		const error = await backend.open().then(
			() => undefined,
			(reason: unknown) => reason,
		);
		expect(error).toMatchObject({ code: 'STORE_UNUSABLE' });
		expect(String(error)).toMatch(/redis:\/\/127.0.0.1:1.*ECONNREFUSED/);
		expect(String(error)).not.toMatch(/secret/);
		await backend.close();
	});
});

test.each([
	[{ url: 'http://x' }, /`url` must be an address such as redis:/],
	[{ url: 'redis://x', prefix: '{a}' }, /`prefix` is "\{a\}"/],
	[{ url: 'redis://x', patienceMs: -1 }, /`patienceMs` must be a whole number from 0 to 600000/],
])('%j is refused, saying what would be right', (options, words) => {
	expect(() => redis(options)).toThrow(words);
});

const own = await OwnRedis.create({ appendfsync: 'everysec' }).catch(() => undefined);
if (!own && process.env['CI']) throw new Error('no redis-server could be started');

describe.skipIf(!own)('what a server is set up to lose', () => {
	if (!own) return;
	afterAll(() => own.remove());

	async function opened(): Promise<string[]> {
		const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
		onTestFinished(() => warn.mockRestore());
		const backend = redis(own?.url ?? '');
		onTestFinished(() => backend.close());
		await backend.open();
		return warn.mock.calls.map(([warning]) => String(warning));
	}

	async function set(name: string, value: string): Promise<void> {
		const backend = await import('ioredis').then(({ Redis }) => new Redis(own?.url ?? ''));
		await backend.config('SET', name, value);
		await backend.quit();
	}

	test('when its machine crashes is said in a warning', async () => {
		expect(await opened()).toEqual([expect.stringMatching(/appendfsync everysec.*may lose the last second/)]);
	});

	test('when its memory is full is refused', async () => {
		for (const policy of ['allkeys-lru', 'volatile-ttl']) {
			await set('maxmemory-policy', policy);
			await expect(opened()).rejects.toThrow(
				new RegExp(`maxmemory-policy is ${policy}. Set it to noeviction`),
			);
		}
		await set('maxmemory-policy', 'noeviction');
	});

	test('when it restarts is said in a warning', async () => {
		await set('appendonly', 'no');
		expect(await opened()).toEqual([
			expect.stringMatching(/appendonly no.*all tasks since its last snapshot/),
		]);
		await set('appendonly', 'yes');
	});

	test('is nothing where it waits for the disk, also across a crash', async () => {
		await set('appendfsync', 'always');
		expect(await opened()).toEqual([]);
	});

	test('and what it has no memory for is refused whole', async () => {
		const backend = redis(own.url);
		onTestFinished(() => backend.close());
		await backend.open();
		const record = newRecord();
		await backend.store.create(newDetails(record), TEST_LIMITS);
		await set('maxmemory', '1');
		onTestFinished(() => set('maxmemory', '0'));
		const another = newRecord();
		const refused = { code: 'STORE_UNUSABLE', message: expect.stringMatching(/OOM/) as string };
		await expect(backend.store.create(newDetails(another), TEST_LIMITS)).rejects.toMatchObject(refused);
		await expect(backend.store.replace(revised(record, ENDED), 'full')).rejects.toMatchObject(refused);
		expect(await backend.store.get(another.taskId)).toBeUndefined();
		expect(await backend.store.list(ALL)).toEqual({ records: [record], nextCursor: null });
		expect(await backend.dispatcher.nextRunAtMs()).toBe(T0);
		expect(await backend.store.remove(record.taskId, 1)).toBe(true);
	});
});
