import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { TaskSupport } from '../protocol/legacy-tasks.ts';

/** Most pages of a tool list that are read; a server that has more is taken to turn in circles. */
const MAX_PAGES = 64;

/** Asks for one page of `tools/list`. */
export type ListPage = (params: JsonObject) => Promise<JsonObject>;

/** What each tool of one connection says about tasks (`execution.taskSupport`), kept until the list changes. */
export class LegacyTools {
	#list: Promise<ReadonlyMap<string, TaskSupport>> | undefined;

	/** The list has changed. */
	forget(): void {
		this.#list = undefined;
	}

	/**
	 * What a tool says; a tool that says nothing, or is not in the list, is `forbidden`. A tool that is missing is
	 * looked for once more, because a notification of the change may have been lost.
	 *
	 * @throws what `list` throws.
	 */
	async supportOf(tool: string, list: ListPage): Promise<TaskSupport> {
		const wasKnown = this.#list !== undefined;
		const known = (await this.#read(list)).get(tool);
		if (known !== undefined || !wasKnown) return known ?? 'forbidden';
		this.forget();
		return (await this.#read(list)).get(tool) ?? 'forbidden';
	}

	#read(list: ListPage): Promise<ReadonlyMap<string, TaskSupport>> {
		if (this.#list) return this.#list;
		const reading = readAll(list);
		this.#list = reading;
		reading.catch(() => {
			if (this.#list === reading) this.#list = undefined;
		});
		return reading;
	}
}

async function readAll(list: ListPage): Promise<ReadonlyMap<string, TaskSupport>> {
	const supports = new Map<string, TaskSupport>();
	let cursor: string | undefined;
	for (let page = 0; page < MAX_PAGES; page++) {
		const { tools, nextCursor } = await list(cursor === undefined ? {} : { cursor });
		for (const tool of Array.isArray(tools) ? (tools as readonly unknown[]) : [])
			if (isJsonObject(tool) && typeof tool['name'] === 'string')
				supports.set(tool['name'], readSupport(tool['execution']));
		if (typeof nextCursor !== 'string') break;
		cursor = nextCursor;
	}
	return supports;
}

function readSupport(execution: unknown): TaskSupport {
	const said = isJsonObject(execution) ? execution['taskSupport'] : undefined;
	return said === 'optional' || said === 'required' ? said : 'forbidden';
}
