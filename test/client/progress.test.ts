/** What a caller hears of a task that is on its way: the SDK's onprogress, as for a plain call. */
import { describe, expect, it } from 'vitest';
import { done, FakeServer, form, task } from './fake-server.ts';

interface Heard {
	readonly progress: number;
	readonly total?: number | undefined;
	readonly message?: string | undefined;
}

/** What onprogress hears of a call whose task says these words, one after the other. */
async function heard(words: readonly (string | undefined)[]): Promise<Heard[]> {
	const fake = new FakeServer();
	const at = (n: number) => `2026-07-28T00:00:${String(n).padStart(2, '0')}Z`;
	fake.get = (n) =>
		n <= words.length
			? task({ statusMessage: words[n - 1], lastUpdatedAt: at(n) })
			: done('done', { statusMessage: 'Done', lastUpdatedAt: at(n) });
	const tasks = await fake.taskClient();
	const said: Heard[] = [];
	const result = tasks.callTool({ name: 'slow' }, { onprogress: (progress) => said.push(progress) });
	await fake.clock.advance(30_000);
	expect(await result).toMatchObject({ content: [{ text: 'done' }] });
	return said;
}

describe('onprogress of callTool', () => {
	it('hears each change of the words of a task, with the percentage that is in them', async () => {
		expect(await heard(['reading (5%)', 'reading (40%, about 2 min left)', 'writing 87.5 %'])).toEqual([
			{ progress: 5, total: 100, message: 'reading (5%)' },
			{ progress: 40, total: 100, message: 'reading (40%, about 2 min left)' },
			{ progress: 87.5, total: 100, message: 'writing 87.5 %' },
		]);
	});

	it('counts words without a number, and says no total', async () => {
		expect(await heard(['reading', 'reading', undefined, 'writing'])).toEqual([
			{ progress: 1, message: 'reading' },
			{ progress: 2, message: 'writing' },
		]);
	});

	it('never falls or stands still, whatever the words say', async () => {
		const said = await heard(['50%', 'again from 10%', 'no number', 'over 300%', '51%']);
		const numbers = said.map(({ progress }) => progress);
		expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
		expect(numbers.map(Math.floor)).toEqual([50, 50, 50, 50, 51]);
	});

	it('hears nothing more once the call has returned, and harms nothing when it throws', async () => {
		const fake = new FakeServer();
		fake.get = (n) =>
			task({ statusMessage: `${n}`, lastUpdatedAt: new Date(Date.UTC(2026, 6, 28, 0, 0, n)).toISOString() });
		const problems: unknown[] = [];
		const tasks = await fake.taskClient({ onProblem: (error) => problems.push(error) });
		const stop = new AbortController();
		let heardOf = 0;
		const result = tasks
			.callTool(
				{ name: 'slow' },
				{
					signal: stop.signal,
					onprogress: () => {
						heardOf += 1;
						if (heardOf === 3) throw new Error('The bar broke');
					},
				},
			)
			.catch((error: unknown) => error);
		await fake.clock.advance(10_000);
		expect(heardOf).toBe(3);
		expect(problems).toMatchObject([{ message: 'The bar broke' }]);
		stop.abort();
		await fake.clock.advance(30_000);
		expect(await result).toMatchObject({ name: 'SdkError' });
		expect(heardOf).toBe(3);
	});

	it('hears the words of a question that waits', async () => {
		const fake = new FakeServer();
		fake.get = () =>
			task({ status: 'input_required', statusMessage: 'Delete it?', inputRequests: { k: form() } });
		const tasks = await fake.taskClient({ onInput: () => new Promise(() => {}) });
		const said: Heard[] = [];
		void tasks.callTool({ name: 'slow' }, { onprogress: (progress) => said.push(progress) }).catch(() => {});
		await fake.clock.advance(5_000);
		expect(said).toEqual([{ progress: 1, message: 'Delete it?' }]);
		tasks.close();
	});
});
