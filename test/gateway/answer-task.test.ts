/** A model that answers a question of a tool for its user, where its host cannot be asked. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringOf, textOf, type Wire } from '../field/wire.ts';
import { gatewayOverHttp } from './rig.ts';

const EVERYTHING = join(
	import.meta.dirname,
	'../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
);

/** A host of which a tool has asked something. */
async function asked(): Promise<{ readonly host: Wire; readonly task_id: string }> {
	const env = { PATH: process.env['PATH'] ?? '' };
	const target = { kind: 'command', command: process.execPath, args: [EVERYTHING, 'stdio'], env } as const;
	const rig = await gatewayOverHttp({ upstreams: { everything: { target } } });
	const host = rig.connect({});
	const question = textOf(await host.call('trigger-elicitation-request'));
	expect(question).toContain('answer_task');
	return { host, task_id: stringOf(/task_id: (\S+)/.exec(question)?.[1]) };
}

describe('answer_task', { timeout: 30_000 }, () => {
	it('refuses what is no answer, and leaves the question open for one that is', async () => {
		const { host, task_id } = await asked();
		const answer = async (args: object): Promise<string> =>
			JSON.stringify(await host.call('answer_task', { task_id, ...args }));
		expect(await answer({ action: 'maybe' })).toContain('action must be one of: accept, decline, cancel');
		expect(await answer({ key: 'other', content: { name: 'Ada' } })).toContain('key must be one of');
		expect(await answer({ content: { nome: 'Ada' } })).toContain('name');
		expect(await answer({ content: 'Ada' })).toContain('Nothing was answered; call answer_task again.');
		expect(await answer({ content: { name: 'Ada' } })).toContain('Ada');
		// The answer that counted is the first one.
		expect(await answer({ content: { name: 'Eve' } })).toContain('Ada');
	});

	it('declines for the user', async () => {
		const { host, task_id } = await asked();
		expect(textOf(await host.call('answer_task', { task_id, action: 'decline' }))).toContain('declined');
	});
});

describe('cancel_task', { timeout: 30_000 }, () => {
	it('says of a call that has ended that there is nothing to stop', async () => {
		const { host, task_id } = await asked();
		const cancel = async (): Promise<string> => textOf(await host.call('cancel_task', { task_id }));
		expect(await cancel()).toBe('The tool call is being stopped.');
		expect(await cancel()).toContain('has ended already');
	});
});
