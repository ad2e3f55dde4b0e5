/** Each preset against a server that behaves as the real one does. */
import { describe, expect, test } from 'vitest';
import { FOLD_PRESETS, type FoldPresetName } from '../../src/gateway/folding/presets.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { call, getTask, inStatus } from '../support/steps.ts';
import type { Wire } from '../support/wire.ts';
import { openGateway, serveStandIn } from './folding-rig.ts';
import { FAMILIES } from './folding-stand-ins.ts';

const NAMES = Object.keys(FOLD_PRESETS) as FoldPresetName[];

function toolsOf(result: JsonObject | undefined): readonly { readonly name: string }[] {
	return (result?.['tools'] ?? []) as never;
}

async function toolNames(wire: Wire, declare: boolean): Promise<readonly string[]> {
	const { result } = await wire.request('tools/list', {}, { declare });
	return toolsOf(result).map(({ name }) => name);
}

describe.each(NAMES)('the preset %s', (name) => {
	test('shows the family as one tool, to hosts that know tasks', async () => {
		const { tools, call: made, hidden, visible } = FAMILIES[name]();
		const wire = await openGateway((await serveStandIn(tools)).url, name);
		const shown = await toolNames(wire, true);
		expect(shown).toContain(made[0]);
		for (const tool of hidden) expect(shown).not.toContain(tool);
		for (const tool of visible) expect(shown).toContain(tool);
		expect(await toolNames(wire, false)).toEqual(expect.arrayContaining([...hidden, ...visible]));
	});

	test('starts the work once, follows it and ends with its result', async () => {
		const { tools, call: made, result, exactly, checkedWith } = FAMILIES[name]();
		const server = await serveStandIn(tools);
		const wire = await openGateway(server.url, name, { speed: 100 });
		const answer = await call(wire, ...made);
		const { taskId } = answer.result ?? {};
		const ended =
			typeof taskId === 'string' ? (await inStatus(wire, taskId, 'completed'))['result'] : answer.result;
		const { content, isError } = ended as { content: readonly { text: string }[]; isError?: boolean };
		expect(isError ?? false).toBe(false);
		expect(content.map(({ text }) => text).join('\n')).toMatch(result);
		const [start, given] = made;
		const starts = server
			.of(start)
			.filter((args) => Object.keys(given).every((key) => Object.hasOwn(args, key)));
		expect(starts.filter(({ operation }) => operation === given['operation'])).toHaveLength(1);
		const [tool, args] = checkedWith;
		expect(server.of(tool)[0]).toEqual(args);
		for (const [each, count] of Object.entries(exactly))
			expect([each, server.of(each).length]).toEqual([each, count]);
		if (typeof taskId === 'string') expect((await getTask(wire, taskId))['status']).toBe('completed');
	});
});
