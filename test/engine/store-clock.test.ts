import { describe, expect, test } from 'vitest';
import { StoreClock } from '../../src/engine/store-clock.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';

const SECOND_MS = 1_000;

describe('the clock of the store', () => {
	test('is what a process shows whose own clock is wrong', async () => {
		const local = new FakeClock();
		const clock = new StoreClock(local, { nowMs: async () => local.nowMs() + 90 * SECOND_MS });
		await clock.start();
		expect(clock.nowMs()).toBe(local.nowMs() + 90 * SECOND_MS);
		await local.advance(SECOND_MS);
		expect(clock.nowMs()).toBe(local.nowMs() + 90 * SECOND_MS);
		clock.stop();
	});

	test('is taken to have been read half-way there and back, by the quickest of several comparisons', async () => {
		const local = new FakeClock();
		const ways = [400, 20, 300];
		const clock = new StoreClock(local, {
			nowMs: async () => {
				const way = ways.shift() ?? 0;
				local.jump(way / 2);
				const shown = local.nowMs() + 5 * SECOND_MS;
				// The way back of the slow ones takes longer than the way there.
				local.jump(way === 20 ? 10 : way);
				return shown;
			},
		});
		await clock.compare();
		expect(clock.nowMs() - local.nowMs()).toBe(5 * SECOND_MS);
	});

	test('is its own where a slow way explains the difference', async () => {
		const local = new FakeClock();
		const clock = new StoreClock(local, {
			nowMs: async () => {
				const shown = local.nowMs();
				local.jump(900);
				return shown;
			},
		});
		await clock.compare();
		expect(clock.nowMs()).toBe(local.nowMs());
	});

	test('is followed when one of the two is set, and kept when the store cannot be reached', async () => {
		const local = new FakeClock();
		let aheadMs = 0;
		let isReachable = true;
		const clock = new StoreClock(local, {
			nowMs: async () => {
				if (!isReachable) throw new Error('the store is away, on purpose');
				return local.nowMs() + aheadMs;
			},
		});
		await clock.start();
		aheadMs = -7 * SECOND_MS;
		await local.advance(30 * SECOND_MS);
		expect(clock.nowMs() - local.nowMs()).toBe(aheadMs);
		isReachable = false;
		await local.advance(60 * SECOND_MS);
		expect(clock.nowMs() - local.nowMs()).toBe(aheadMs);
		clock.stop();
		expect(local.pending).toBe(0);
	});
});
