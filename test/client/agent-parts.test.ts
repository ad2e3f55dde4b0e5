/** What agent loops are made of: names, what a model is given of a result, the inbox of ends. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerParts, plainText } from '../../src/client/answer-parts.ts';
import type { BackgroundEnd } from '../../src/client/background-tasks.ts';
import { EndInbox } from '../../src/client/end-inbox.ts';
import { functionNames, type NamedTool } from '../../src/client/function-names.ts';

describe('names of functions', () => {
	const named = (tools: NamedTool[], reserved: string[] = []) =>
		Object.fromEntries(
			Array.from(functionNames(tools, reserved), ([name, tool]) => [`${tool.server}/${tool.name}`, name]),
		);

	it('are those of the tools where they can be', () => {
		expect(
			named([
				{ server: 'a', name: 'read_file' },
				{ server: 'b', name: 'files.read/all' },
			]),
		).toEqual({ 'a/read_file': 'read_file', 'b/files.read/all': 'files_read_all' });
	});

	it('have the server in front where two would be the same, or one is taken', () => {
		expect(
			named(
				[
					{ server: 'git', name: 'search' },
					{ server: 'the web', name: 'search' },
					{ server: 'ci', name: 'await_task' },
				],
				['await_task'],
			),
		).toEqual({
			'git/search': 'git_search',
			'the web/search': 'the_web_search',
			'ci/await_task': 'ci_await_task',
		});
	});

	it('end with a digest where they are too long or still the same', () => {
		const long = 'x'.repeat(100);
		const names = named([
			{ server: 'a', name: long },
			{ server: 'a', name: `${long}y` },
			{ server: 'a', name: 'p.q' },
			{ server: 'a', name: 'p/q' },
		]);
		expect(names[`a/${long}`]).toMatch(/^x{55}_[0-9a-f]{8}$/);
		expect(names['a/p.q']).toMatch(/^p_q_[0-9a-f]{8}$/);
		expect(new Set(Object.values(names)).size).toBe(4);
	});

	it('are legal, unlike each other and the same in any order, for any tools', () => {
		const word = fc.oneof(
			fc.constantFrom('a', 'b', 'a_b', 'a.b', 'await_task', 'é', 'b_a_b'),
			fc.string({ minLength: 1, maxLength: 130 }),
		);
		const tool = fc.record({ server: word, name: word });
		fc.assert(
			fc.property(fc.uniqueArray(tool, { selector: (it) => `${it.server}\0${it.name}` }), (tools) => {
				const names = named(tools, ['await_task']);
				const all = Object.values(names);
				expect(new Set(all).size).toBe(tools.length);
				for (const name of all) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
				expect(all).not.toContain('await_task');
				expect(named(tools.toReversed(), ['await_task'])).toEqual(names);
			}),
		);
	});
});

describe('what a model is given of a result', () => {
	it('is its texts, links and files, each in the order of the tool', () => {
		const parts = answerParts(
			{
				content: [
					{ type: 'text', text: 'Two charts' },
					{ type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
					{ type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
					{
						type: 'resource_link',
						uri: 'file:///r.csv',
						name: 'r',
						mimeType: 'text/csv',
						description: 'All',
					},
					{ type: 'resource', resource: { uri: 'file:///a.txt', text: 'words' } },
					{ type: 'resource', resource: { uri: 'file:///a.bin', blob: 'AAAA' } },
				],
			},
			1_000,
		);
		expect(parts).toEqual([
			{ type: 'text', text: 'Two charts' },
			{ type: 'file', data: 'aGVsbG8=', mediaType: 'image/png' },
			{ type: 'file', data: 'aGk=', mediaType: 'audio/wav' },
			{ type: 'text', text: 'Link to r: file:///r.csv (text/csv). All' },
			{ type: 'text', text: 'Resource file:///a.txt:\nwords' },
			{ type: 'file', data: 'AAAA', mediaType: 'application/octet-stream' },
		]);
		expect(plainText(parts)).toContain('[A file of type image/png, 5 bytes, which cannot be shown here]');
	});

	it('is the structured content where there is no text, and words where there is nothing', () => {
		const structuredContent = { rows: 3 };
		expect(plainText(answerParts({ content: [], structuredContent }, 1_000))).toBe('{"rows":3}');
		expect(
			plainText(answerParts({ content: [{ type: 'text', text: '3 rows' }], structuredContent }, 1_000)),
		).toBe('3 rows');
		const link = { type: 'resource_link' as const, uri: 'file:///r.csv', name: 'r' };
		expect(plainText(answerParts({ content: [link], structuredContent }, 1_000))).toBe(
			'Link to r: file:///r.csv\n{"rows":3}',
		);
		expect(plainText(answerParts({ content: [] }, 1_000))).toBe('The tool returned nothing.');
	});

	it('is cut to the limit, over all texts, and says so', () => {
		const content = [
			{ type: 'text' as const, text: 'a'.repeat(60) },
			{ type: 'text' as const, text: 'b'.repeat(60) },
			{ type: 'text' as const, text: 'c'.repeat(60) },
		];
		expect(answerParts({ content }, 100)).toEqual([
			{ type: 'text', text: 'a'.repeat(60) },
			{ type: 'text', text: 'b'.repeat(40) },
			{ type: 'text', text: '[Cut: the text has 180 characters, and these are the first 100]' },
		]);
		expect(answerParts({ content }, 180)).toHaveLength(3);
	});

	it('is never cut within a character', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.nat(20), (text, cut) => {
				const [first] = answerParts({ content: [{ type: 'text', text }] }, cut + 1);
				expect(first?.type === 'text' && first.text.isWellFormed()).toBe(true);
			}),
		);
		expect(answerParts({ content: [{ type: 'text', text: 'ab😀' }] }, 3)[0]).toEqual({
			type: 'text',
			text: 'ab',
		});
	});

	it('has a file that is too large in words', () => {
		const data = 'A'.repeat(8_000_004);
		const parts = answerParts({ content: [{ type: 'image', data, mimeType: 'image/png' }] }, 1_000);
		expect(plainText(parts)).toContain('6000003 bytes');
		expect(parts).toHaveLength(1);
		expect(parts[0]?.type).toBe('text');
	});
});

describe('the inbox of ends', () => {
	function end(handle: string, awaited = false): BackgroundEnd {
		return { handle, tool: 'build', status: 'completed', durationMs: 1, awaited, text: '' };
	}

	it('gives what has arrived, and waits where there is nothing', async () => {
		const inbox = new EndInbox();
		expect(inbox.take()).toEqual([]);
		const waiting = inbox.next();
		void inbox.onEnd(end('a'));
		void inbox.onEnd(end('b'));
		expect((await waiting).map(({ handle }) => handle)).toEqual(['a', 'b']);
		expect(inbox.size).toBe(0);
		void inbox.onEnd(end('c'));
		expect(inbox.size).toBe(1);
		expect((await inbox.next()).map(({ handle }) => handle)).toEqual(['c']);
		expect(inbox.take()).toEqual([]);
	});

	it('does not give what was awaited, and acknowledges it with the rest', async () => {
		const inbox = new EndInbox();
		const settled: string[] = [];
		void inbox.onEnd(end('awaited', true)).then(() => settled.push('awaited'));
		void inbox.onEnd(end('told')).then(() => settled.push('told'));
		expect(inbox.take().map(({ handle }) => handle)).toEqual(['told']);
		void inbox.onEnd(end('later')).then(() => settled.push('later'));
		await Promise.resolve();
		expect(settled).toEqual([]);
		inbox.acknowledge();
		await Promise.resolve();
		expect(settled).toEqual(['awaited', 'told']);
	});

	it('stops waiting at a signal', async () => {
		const inbox = new EndInbox();
		const stop = new AbortController();
		const waiting = inbox.next(stop.signal);
		stop.abort(new Error('The session ended'));
		await expect(waiting).rejects.toThrow('The session ended');
		await expect(inbox.next(stop.signal)).rejects.toThrow('The session ended');
	});
});
