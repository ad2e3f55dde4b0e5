/** What becomes of a question where the host of 2026-07-28 can be asked nothing and knows no Tasks. */
import { describe, expect, it } from 'vitest';
import { CLIENT_CAPABILITIES_META } from '../../src/protocol/names.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { textOf } from '../field/wire.ts';
import { complete, gatewayOverHttp, type RawServer, rawServer, tool } from './rig.ts';

const QUESTION = {
	method: 'elicitation/create',
	params: {
		mode: 'form',
		message: 'Which colour?',
		requestedSchema: { type: 'object', properties: { answer: { type: 'string' } } },
	},
};

/** A server that refuses to ask, as the SDKs do, where the request does not say that the host can be asked. */
function asking(): Promise<RawServer> {
	return rawServer([tool('paint')], {
		'tools/call': (request) => {
			const { inputResponses, _meta: meta } = request.params;
			if (isJsonObject(inputResponses))
				return request.result(complete(JSON.stringify(inputResponses['ask'])));
			const capabilities = isJsonObject(meta) ? meta[CLIENT_CAPABILITIES_META] : undefined;
			if (!isJsonObject(capabilities) || !isJsonObject(capabilities['elicitation']))
				return request.error(-32021, 'Missing required client capability');
			request.result({ resultType: 'input_required', inputRequests: { ask: QUESTION }, requestState: 's' });
		},
	});
}

async function paint(capabilities: JsonObject) {
	const { target } = await asking();
	const rig = await gatewayOverHttp({ upstreams: { painter: { target } } });
	const wire = rig.connect(capabilities);
	return { wire, answer: await wire.call('paint') };
}

describe('the question of a server in a plain call', () => {
	it('reaches the model of such a host in words, and its answer brings the result', async () => {
		const { wire, answer } = await paint({});
		const text = textOf(answer);
		expect(text).toContain('Which colour?');
		const taskId = /^task_id: (\S+)$/m.exec(text)?.[1] ?? '';
		const result = await wire.call('answer_task', { task_id: taskId, content: { answer: 'blue' } });
		expect(textOf(result)).toBe(JSON.stringify({ action: 'accept', content: { answer: 'blue' } }));
	});

	it('is not asked where the host answers other questions itself, so that the server asks one of those', async () => {
		const { target } = await asking();
		const rig = await gatewayOverHttp({ upstreams: { painter: { target } } });
		await expect(rig.connect({ sampling: {} }).call('paint')).rejects.toThrow('-32021');
	});

	it('is the own question of a host that can be asked', async () => {
		const { answer } = await paint({ elicitation: { form: {} } });
		expect(answer).toMatchObject({ resultType: 'input_required', inputRequests: { ask: QUESTION } });
	});
});
