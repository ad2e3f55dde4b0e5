/** F20: a client resumes with the event id of another session, and is sent what belongs to that one. */
import { afterEach, describe, expect, it } from 'vitest';
import { SUBJECT_TOKENS } from './auth.ts';
import { type Fixture, overHttp } from '../support/fixture-server.ts';
import { HttpSession, type LegacyStream } from '../support/legacy-wire.ts';

let fixture: Fixture;
afterEach(() => fixture.close());

/** Begins a call that is told of progress; its stream, once an event has come on it. */
async function heldCall(session: HttpSession, gate: string): Promise<LegacyStream> {
	const stream = await session.open({
		jsonrpc: '2.0',
		id: `held ${gate}`,
		method: 'tools/call',
		params: { name: 'noisy', arguments: { gate }, _meta: { progressToken: gate } },
	});
	await session.until(({ method }) => method === 'notifications/progress');
	return stream;
}

/** The ids beside one. */
function neighbours(id: string): string[] {
	const [, secret, serial] = /^(.*-)(\d+)$/.exec(id) ?? [];
	return [-1, 1].map((step) => `${secret}${Number(serial) + step}`);
}

describe('F20: event ids belong to their session', () => {
	it.each([
		['the same principal', 'ada'],
		['another principal', 'bob'],
	])('F20: an id of another session of %s, and its neighbours, are unknown ones', async (_whose, token) => {
		fixture = await overHttp({ listen: { auth: SUBJECT_TOKENS } });
		const victim = await HttpSession.open(fixture.url ?? '', { token: 'ada' });
		const thief = await HttpSession.open(fixture.url ?? '', { token });
		const stream = await heldCall(victim, 'a');
		fixture.control.open('a', 'a secret');
		await stream.ended;
		const stolen = stream.lastEventId() ?? '';
		await heldCall(thief, 'b');
		const unknown = await thief.listen('0');
		expect(unknown.status).toBe(400);
		for (const id of [stolen, ...neighbours(stolen), 'x'.repeat(5_000)]) {
			const { status, body } = await thief.listen(id);
			expect({ id, status, body }).toEqual({ id, status: 400, body: unknown.body });
		}
		expect(JSON.stringify(thief.received)).not.toContain('a secret');
		fixture.control.open('b');
	});

	it('F20: the session itself is resumed with it', async () => {
		fixture = await overHttp();
		const session = await HttpSession.open(fixture.url ?? '');
		const stream = await heldCall(session, 'a');
		stream.cut();
		await stream.ended;
		fixture.control.open('a', 'its own');
		expect((await session.listen(stream.lastEventId())).status).toBe(200);
		const answer = await session.until(({ id }) => id === 'held a');
		expect(JSON.stringify(answer)).toContain('its own');
	});
});
