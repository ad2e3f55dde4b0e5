import { describe, expect, it } from 'vitest';
import { EventLog } from '../../src/server/event-log.ts';
import { FakeClock } from '../../src/testing/index.ts';

const WIDE = { maxEventBytes: 1_000_000, maxEvents: 1_000, eventLifeMs: 60_000 };

const note = (text: string) => ({
	jsonrpc: '2.0' as const,
	method: 'notifications/message',
	params: { text },
});

async function replay(log: EventLog, id: string): Promise<unknown[]> {
	const sent: unknown[] = [];
	await log.replayEventsAfter(id, {
		send: async (_id, message) => void sent.push('params' in message ? message.params?.['text'] : message),
	});
	return sent;
}

describe('the events of a session', () => {
	it('are replayed after an id, those of its stream alone', async () => {
		const log = new EventLog(WIDE, new FakeClock());
		const first = await log.storeEvent('a', note('1'));
		await log.storeEvent('b', note('2'));
		await log.storeEvent('a', note('3'));
		expect(log.has(first)).toBe(true);
		expect(await replay(log, first)).toEqual(['3']);
	});

	it('have ids that no other session knows', async () => {
		const [one, other] = [new EventLog(WIDE, new FakeClock()), new EventLog(WIDE, new FakeClock())];
		const id = await one.storeEvent('a', note('1'));
		await other.storeEvent('a', note('2'));
		expect(other.has(id)).toBe(false);
		await expect(replay(other, id)).rejects.toThrow('not known any more');
	});

	it.each([
		['number', { ...WIDE, maxEvents: 2 }],
		['size', { ...WIDE, maxEventBytes: 2 * JSON.stringify(note('1')).length }],
	])('are bounded in %s, the oldest going first', async (_what, limits) => {
		const log = new EventLog(limits, new FakeClock());
		const ids = [];
		for (const text of ['1', '2', '3']) ids.push(await log.storeEvent('a', note(text)));
		expect(ids.map((id) => log.has(id))).toEqual([false, true, true]);
	});

	it('are forgotten after their time', async () => {
		const clock = new FakeClock();
		const log = new EventLog(WIDE, clock);
		const id = await log.storeEvent('a', note('1'));
		clock.jump(59_999);
		expect(log.has(id)).toBe(true);
		clock.jump(1);
		expect(log.has(id)).toBe(false);
	});

	it('leave no gap: an event too large to be kept takes the older ones with it', async () => {
		const log = new EventLog({ ...WIDE, maxEventBytes: 500 }, new FakeClock());
		const id = await log.storeEvent('a', note('1'));
		await log.storeEvent('a', note('x'.repeat(1_000)));
		await log.storeEvent('a', note('3'));
		expect(log.has(id)).toBe(false);
	});
});
