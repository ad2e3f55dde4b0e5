import { isJsonObject } from '../protocol/json.ts';
import type { TaskSupport } from '../protocol/legacy-tasks.ts';
import type { McpServer } from './sdk.ts';

const supports = new WeakMap<object, TaskSupport>();

/** What servers say that answer `tools/call` themselves, by the tool's name. */
const rules = new WeakMap<McpServer, (tool: string) => TaskSupport | undefined>();

/** Remembers what a callback that `tasks.handler()` made says about Tasks. */
export function noteSupport(callback: object, support: TaskSupport): void {
	supports.set(callback, support);
}

/** Remembers what a server whose tools are not registered with the SDK says about them. */
export function noteSupportRule(server: McpServer, rule: (tool: string) => TaskSupport | undefined): void {
	rules.set(server, rule);
}

/**
 * What a tool says about Tasks; null for one that is no task tool, undefined for one that is not there. 2025-11-25 wants it in
 * `tools/list`, where no callback is called, and the SDK gives the tools that it holds to nobody: so this looks
 * at its private map, and finds no task tools at all in an SDK that keeps them elsewhere.
 */
export function supportOf(server: McpServer, tool: string): TaskSupport | null | undefined {
	const rule = rules.get(server);
	if (rule) return rule(tool) ?? null;
	const tools: unknown = Reflect.get(server, '_registeredTools');
	if (!isJsonObject(tools) || !Object.hasOwn(tools, tool)) return undefined;
	const registered: unknown = tools[tool];
	const callback: unknown = isJsonObject(registered) ? registered['handler'] : undefined;
	return (typeof callback === 'function' && supports.get(callback)) || null;
}
