/** F34: task ids like `task-1`, shared by all clients. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memory } from '../../src/backend/memory/index.ts';
import { systemClock } from '../../src/engine/clock.ts';
import { Engine } from '../../src/engine/engine.ts';
import { DEFAULT_LIMITS, DEFAULT_TIMING, SILENT } from '../../src/engine/options.ts';
import { checkOptions } from '../../src/server/tool-options.ts';
import { NO_INPUT } from '../../src/protocol/capabilities.ts';
import { SUBJECT_TOKENS } from './auth.ts';
import { type RigOptions, serveHttp, serveStdio, text } from './harness.ts';
import type { Reply } from './wire.ts';

const IDS = 10_000;
const tools: RigOptions = {
	tools: (server, tasks) => {
		server.registerTool(
			'wait',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
				await task.sleep('long', 3_600_000);
				return text('done');
			}),
		);
	},
};

async function mint(count: number): Promise<string[]> {
	const engine = new Engine({
		...{ backend: memory(), clock: systemClock, limits: DEFAULT_LIMITS, timing: DEFAULT_TIMING, log: SILENT },
		execute: async () => ({ kind: 'returned', result: {} }),
		...{ concurrency: count, owner: 'test', isOwnerGone: () => false },
	});
	engine.start();
	const call = {
		...{ tool: 'wait', arguments: {}, prepared: null, principal: 'ada', inputCapabilities: NO_INPUT },
		...{
			idempotencyKey: null,
			trace: {},
			joinsRunning: false,
			enter: null,
			keepFirst: false,
			policy: checkOptions({}).policyFor({}, true),
		},
	};
	const ids: string[] = [];
	while (ids.length < count) ids.push((await engine.call(call)).taskId);
	await engine.stop(0);
	return ids;
}

/** What a caller can tell two answers apart by; how the body is framed says nothing about a task. */
function visible({ status, headers, text: body }: Reply): unknown {
	const framing = ['date', 'content-length', 'transfer-encoding'];
	const others = Object.entries(headers).filter(([name]) => !framing.includes(name));
	return { status, others, body: body.replace(/"id":\d+/, '"id":0') };
}

describe('F34: task ids are nobody’s guess', () => {
	it(`F34: ${IDS} ids show no order, no prefix and no time`, async () => {
		const ids = await mint(IDS);
		expect(new Set(ids).size).toBe(IDS);
		const bytes = ids.map((id) => Buffer.from(id, 'hex'));
		// 20 bytes that come out of the text as they went in: 160 bits.
		for (const [index, id] of ids.entries()) {
			expect(id).toMatch(/^[0-9a-f]{40}$/);
			expect(bytes[index]).toHaveLength(20);
		}
		// Every bit is set in half of the ids: 4,999 ± 6 standard deviations of 50.
		for (let bit = 0; bit < 160; bit++) {
			const set = bytes.filter((id) => ((id[bit >> 3] ?? 0) >> (bit & 7)) & 1).length;
			expect(Math.abs(set - IDS / 2), `bit ${bit}`).toBeLessThan(300);
		}
		// Nor does one id say anything about the next: half of the bits change.
		const rising = ids.filter((id, index) => index > 0 && id > (ids[index - 1] ?? '')).length;
		expect(Math.abs(rising - IDS / 2)).toBeLessThan(300);
		let changedBits = 0;
		for (let index = 1; index < bytes.length; index++)
			for (let byte = 0; byte < 20; byte++)
				changedBits += popCount((bytes[index]?.[byte] ?? 0) ^ (bytes[index - 1]?.[byte] ?? 0));
		expect(changedBits / (IDS - 1)).toBeGreaterThan(79);
		expect(changedBits / (IDS - 1)).toBeLessThan(81);
	});

	it('F34: a foreign, truncated, case-changed, giant or crooked id is answered as one that never was', async () => {
		const rig = await serveHttp({ ...tools, http: { auth: SUBJECT_TOKENS } });
		const taskId = await rig.connect({ token: 'ada' }).start('wait');
		const bob = rig.connect({ token: 'bob' });
		const ada = rig.connect({ token: 'ada' });
		const swapped = Array.from(taskId)
			.map((letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()))
			.join('');
		for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
			const ask = (wire: typeof ada, id: string): Promise<Reply> =>
				wire.request(method, { taskId: id, ...(method === 'tasks/update' && { inputResponses: {} }) });
			const unknown = visible(await ask(ada, 'a'.repeat(40)));
			expect(unknown).toMatchObject({ status: 200, body: expect.stringContaining('"code":-32602') });
			expect(visible(await ask(bob, taskId)), 'foreign').toEqual(unknown);
			for (const id of [
				...[taskId.slice(0, -1), `${taskId}A`, swapped, 'x'.repeat(10_000), '../../etc/passwd', '%2e%2e%2f'],
				...[
					'',
					' ',
					`${taskId} `,
					`${taskId}\n`,
					`${taskId}\r\nx-injected: 1`,
					`${taskId}\0`,
					'日本',
					'__proto__',
				],
				...["' OR 1=1 --", `=?base64?${Buffer.from(taskId).toString('base64')}?=`],
			])
				expect(visible(await ask(ada, id)), JSON.stringify(id.slice(0, 60))).toEqual(unknown);
		}
		expect(await ada.get(taskId)).toMatchObject({ status: 'working' });
	});

	it('F34: over stdio such ids are answered the same way', async () => {
		const stdio = serveStdio(tools);
		for (const taskId of ['a'.repeat(40), 'x'.repeat(10_000), '../../etc', 'a\nb', 'a\0b', '\ud800', '']) {
			const { error } = await stdio.request('tasks/get', { taskId });
			expect(error, JSON.stringify(taskId.slice(0, 40))).toEqual({ code: -32602, message: 'Task not found' });
		}
	});
});

function popCount(byte: number): number {
	let count = 0;
	for (let rest = byte; rest > 0; rest >>= 1) count += rest & 1;
	return count;
}
