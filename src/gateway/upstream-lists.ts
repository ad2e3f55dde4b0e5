import * as z from 'zod';
import { MAX_TIMER_MS } from '../client/clock.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { Upstream } from './upstream.ts';

/** The lists that a server has, by the method that reads them; each entry as the server wrote it. */
export interface UpstreamLists {
	readonly tools: readonly JsonObject[];
	readonly prompts: readonly JsonObject[];
	readonly resources: readonly JsonObject[];
	readonly resourceTemplates: readonly JsonObject[];
	/** What the server said of itself in the handshake. */
	readonly capabilities: JsonObject;
	readonly instructions: string | null;
}

/** The name of one list. */
export type ListName = 'tools' | 'prompts' | 'resources' | 'resourceTemplates';

export const NO_LISTS: UpstreamLists = {
	tools: [],
	prompts: [],
	resources: [],
	resourceTemplates: [],
	capabilities: {},
	instructions: null,
};

const METHODS: Readonly<Record<ListName, readonly [method: string, capability: string]>> = {
	tools: ['tools/list', 'tools'],
	prompts: ['prompts/list', 'prompts'],
	resources: ['resources/list', 'resources'],
	resourceTemplates: ['resources/templates/list', 'resources'],
};

/** More pages than any list has; a server whose cursor runs in a circle must not be followed for ever. */
const MAX_PAGES = 1_000;

const PAGE = z.looseObject({ nextCursor: z.string().optional() });

/**
 * Reads all lists of a connected server, page by page.
 *
 * @throws what the SDK throws.
 */
export async function readLists({ client }: Pick<Upstream, 'client'>): Promise<UpstreamLists> {
	const capabilities = { ...client.getServerCapabilities() } as JsonObject;
	const read = async (name: ListName): Promise<readonly JsonObject[]> => {
		const [method, capability] = METHODS[name];
		if (capabilities[capability] === undefined) return [];
		const entries: JsonObject[] = [];
		let cursor: string | undefined;
		for (let page = 0; page < MAX_PAGES; page += 1) {
			const params = cursor === undefined ? {} : { cursor };
			const answer = await client.request({ method, params }, PAGE, { timeout: MAX_TIMER_MS });
			const found = answer[name];
			if (Array.isArray(found)) entries.push(...(found as readonly JsonObject[]));
			cursor = answer.nextCursor;
			if (cursor === undefined) break;
		}
		return entries;
	};
	const [tools, prompts, resources, resourceTemplates] = await Promise.all([
		read('tools'),
		read('prompts'),
		read('resources'),
		// Many servers with resources have no templates, and do not know the method.
		read('resourceTemplates').catch(() => []),
	]);
	const instructions = client.getInstructions() ?? null;
	return { tools, prompts, resources, resourceTemplates, capabilities, instructions };
}
