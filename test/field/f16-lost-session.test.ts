/** F16: a 404 on a known session is the end for the client, or a call that was under way is made twice. */
import {
	Client,
	type ProgressNotification,
	SdkHttpError,
	StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { afterEach, describe, expect, it } from 'vitest';
import { memoryJournal, TaskClient, taskFetch } from '../../src/client/index.ts';
import { LegacyHttp, legacyServer } from '../client/legacy-server.ts';
import { text } from '../client/server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

async function connect(fetch = taskFetch()) {
	const events = { starts: [] as string[], answers: [] as string[] };
	const http = await LegacyHttp.open(() => legacyServer({ events }));
	ends.push(() => http.close());
	const client = new Client({ name: 'host', version: '1' });
	await client.connect(new StreamableHTTPClientTransport(http.url, { fetch }));
	ends.push(() => client.close());
	const tasks = new TaskClient(client, { journal: memoryJournal() });
	ends.push(() => tasks.close());
	// What follows is about a connection that is in use.
	await tasks.callTool({ name: 'plain' });
	http.requests.length = 0;
	events.starts.length = 0;
	return { http, client, tasks, events };
}

describe('a server that loses its sessions between two calls', () => {
	it('gets one new session for all calls that wait, and each call once more (F16)', async () => {
		const { http, tasks, events } = await connect();
		await http.restart();
		const calls = Array.from({ length: 5 }, () => tasks.callTool({ name: 'plain' }));
		for (const { content } of await Promise.all(calls)) expect(content).toEqual(text('plain').content);
		expect(http.count('initialize')).toBe(1);
		expect(http.count('notifications/initialized')).toBe(1);
		// Each came twice, with the same id: turned away under the old session, and taken under the new one.
		const ids = http.requests.filter(({ method }) => method === 'tools/call').map(({ id }) => id);
		for (const id of new Set(ids)) expect(ids.filter((other) => other === id).length).toBeLessThanOrEqual(2);
		expect(new Set(ids).size).toBe(5);
		expect(events.starts).toHaveLength(5);
	});

	it('can lose them again and again (F16)', async () => {
		const { http, tasks, events } = await connect();
		for (let round = 0; round < 3; round++) {
			await http.restart();
			await tasks.callTool({ name: 'plain' });
		}
		expect(http.count('initialize')).toBe(3);
		expect(events.starts).toHaveLength(3);
	});

	it('gets the call once more and not again, when that is turned away as well (F16)', async () => {
		const { http, tasks, events } = await connect();
		http.forgetful = true;
		await http.restart();
		await expect(tasks.callTool({ name: 'plain' })).rejects.toBeInstanceOf(SdkHttpError);
		expect(http.count('tools/call')).toBe(2);
		expect(http.count('initialize')).toBe(1);
		expect(events.starts).toEqual([]);
		http.forgetful = false;
		await tasks.callTool({ name: 'plain' });
		expect(events.starts).toEqual(['plain']);
	});

	it('makes tasks under the new session (F16)', async () => {
		const { http, tasks, events } = await connect();
		await http.restart();
		expect((await tasks.callTool({ name: 'must' })).content).toEqual(text('as a task').content);
		expect(http.count('initialize')).toBe(1);
		expect(events.starts).toEqual(['must']);
	});
});

describe('a server that dies in the middle of a call', () => {
	it('leaves the call with its outcome unknown, and does not get it again (F16)', async () => {
		const { http, tasks, events } = await connect();
		const started = Promise.withResolvers<ProgressNotification['params'] | object>();
		const call = tasks.callTool(
			{ name: 'plain', arguments: { label: 'hold' } },
			{ onprogress: started.resolve },
		);
		const failed = expect(call).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
		await started.promise;
		await http.restart();
		await failed;
		// The connection goes on with the next call, and only with that.
		expect((await tasks.callTool({ name: 'plain' })).content).toEqual(text('plain').content);
		expect(events.starts).toEqual(['plain', 'plain']);
		expect(http.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(3);
	});

	it('that held a task has forgotten it, and the task is not made again (F16)', async () => {
		const { http, tasks, events } = await connect();
		const execution = await tasks.startTool({ name: 'forever' });
		await http.restart();
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		expect(events.starts).toEqual(['forever']);
	});
});

describe('a host that does not use taskFetch', () => {
	it('sees the 404 of a lost session, and a task is out of reach until it connects anew (F16)', async () => {
		const { http, client, tasks, events } = await connect(fetch);
		const execution = await tasks.startTool({ name: 'must' });
		await http.restart();
		await expect(tasks.callTool({ name: 'plain' })).rejects.toBeInstanceOf(SdkHttpError);
		await expect.poll(() => execution.state?.reachable).toBe(false);
		await client.close();
		await client.connect(new StreamableHTTPClientTransport(http.url));
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		expect(events.starts).toEqual(['must']);
	});
});
