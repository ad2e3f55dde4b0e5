import { isJsonObject } from '../protocol/json.ts';
import { LEGACY_TASKS_VERSION, type TaskSupport } from '../protocol/legacy-tasks.ts';
import { TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';

/**
 * How a call is made.
 *
 * - `extension`: the server may answer with a task of 2026-07-28.
 * - `legacy_task`: a task of 2025-11-25 is asked for.
 * - `plain`: one request, held until its result is there.
 */
export type RouteKind = 'extension' | 'legacy_task' | 'plain';

/** How one call is made, and why. */
export interface CallRoute {
	readonly tool: string;
	readonly kind: RouteKind;
	/** One sentence for a log. */
	readonly why: string;
}

/** How much of the experimental Tasks of 2025-11-25 a server's capabilities announce for tool calls (L01). */
export type LegacyAnnouncement = 'full' | 'half' | 'none';

/**
 * Reads `capabilities.tasks` of 2025-11-25 as it was meant (F15): whatever object is there announces Tasks, though
 * only the full form says that tool calls can be tasks.
 */
export function readAnnouncement(capabilities: unknown): LegacyAnnouncement {
	const tasks = isJsonObject(capabilities) ? capabilities['tasks'] : undefined;
	if (!isJsonObject(tasks)) return 'none';
	const requests = tasks['requests'];
	const tools = isJsonObject(requests) ? requests['tools'] : undefined;
	return isJsonObject(tools) && isJsonObject(tools['call']) ? 'full' : 'half';
}

/**
 * Chooses the route of a call.
 *
 * @param support - what the tool says; asked for only where it matters.
 */
export async function chooseRoute(
	tool: string,
	protocolVersion: string | undefined,
	announcement: LegacyAnnouncement,
	support: () => Promise<TaskSupport>,
): Promise<CallRoute> {
	const route = (kind: RouteKind, why: string): CallRoute => ({ tool, kind, why });
	if (protocolVersion === TASKS_PROTOCOL_VERSION)
		return route('extension', `the server speaks ${protocolVersion}: it decides itself`);
	if (protocolVersion !== LEGACY_TASKS_VERSION)
		return route('plain', `the server speaks ${protocolVersion ?? 'no known version'}, which has no Tasks`);
	if (announcement === 'none') return route('plain', 'the server announces no Tasks');
	const taskSupport = await support();
	if (taskSupport === 'forbidden') return route('plain', 'the tool supports no tasks');
	const form = announcement === 'full' ? 'in full' : 'in a half-formed way, which is taken for the full one';
	return route('legacy_task', `the server announces Tasks ${form}, for this tool ${taskSupport}`);
}
