import { isJsonObject, type JsonObject } from '../../protocol/json.ts';
import { TASKS_EXTENSION } from '../../protocol/names.ts';
import { type FoldProposal, proposeFolds } from '../folding/propose.ts';
import { descriptionOf, nameOf, propertiesOf } from '../folding/tool-schema.ts';
import { hintsOf, type Inspection } from './inspection.ts';

/** How a server takes part in long calls by itself. */
export type TaskSupport = 'extension' | '2025-11-25' | 'none';

/** Whether a start is soon enough for some hosts. */
export interface StartVerdict {
	readonly limitMs: number;
	/** What happens to a server that is slower. */
	readonly beyond: string;
	readonly isMet: boolean;
}

/** A tool as the doctor sees it. */
export interface ToolReport {
	readonly name: string;
	readonly hints: JsonObject;
	/** Why it may take long; empty when nothing says so. */
	readonly mayTakeLong: readonly string[];
}

/** What is to be known about a server before it is put behind the gateway. */
export interface ServerReport {
	readonly name: string;
	readonly version: string;
	readonly protocolVersion: string;
	readonly handshakeMs: number;
	readonly start: readonly StartVerdict[];
	readonly tasks: TaskSupport;
	readonly capabilities: readonly string[];
	readonly counts: { readonly tools: number; readonly prompts: number; readonly resources: number };
	readonly tools: readonly ToolReport[];
	readonly proposals: readonly FoldProposal[];
}

/** How soon hosts want an answer, in milliseconds, and what those do that do not get it. */
const START_LIMITS: readonly (readonly [limitMs: number, beyond: string])[] = [
	[500, 'on a slower machine it may come too late for some hosts'],
	[2_000, 'Claude Code falls back to a revision without Tasks, the AI SDK already after 1 s'],
	[10_000, 'hosts list the server as failed, or work without its tools'],
];

/** Makes a report of what a server said about itself. */
export function reportOf(inspection: Inspection): ServerReport {
	const { name, version, protocolVersion, handshakeMs, lists } = inspection;
	const { capabilities, tools, prompts, resources } = lists;
	return {
		...{ name, version, protocolVersion, handshakeMs },
		start: START_LIMITS.map(([limitMs, beyond]) => ({ limitMs, beyond, isMet: handshakeMs <= limitMs })),
		tasks: tasksIn(capabilities),
		capabilities: Object.keys(capabilities),
		counts: { tools: tools.length, prompts: prompts.length, resources: resources.length },
		tools: tools.map((tool) => ({
			name: nameOf(tool),
			hints: hintsOf(tool),
			mayTakeLong: reasonsToTakeLong(tool),
		})),
		proposals: proposeFolds(tools),
	};
}

function tasksIn({ extensions, tasks }: JsonObject): TaskSupport {
	if (isJsonObject(extensions) && extensions[TASKS_EXTENSION] !== undefined) return 'extension';
	return tasks === undefined ? 'none' : '2025-11-25';
}

const SIGNS: readonly (readonly [sign: RegExp, reason: string])[] = [
	[
		/\blong[- ]running\b|\basynchronous(ly)?\b|\bin the background\b/i,
		'its description says that it runs long',
	],
	[/\b(several|few|up to \d+|\d+) (minutes|hours)\b/i, 'its description speaks of minutes or hours'],
	[/\bpoll(ing|s)?\b|\bcheck (the )?status\b/i, 'its description speaks of polling'],
];

function reasonsToTakeLong(tool: JsonObject): readonly string[] {
	const description = descriptionOf(tool);
	const found = SIGNS.filter(([sign]) => sign.test(description)).map(([, reason]) => reason);
	const waits = Object.keys(propertiesOf(tool) ?? {}).filter((name) =>
		/time_?out|wait|poll_?interval/i.test(name),
	);
	const { execution } = tool;
	const support = isJsonObject(execution) ? execution['taskSupport'] : undefined;
	return [
		...found,
		...(waits.length > 0 ? [`it takes ${waits.join(', ')}`] : []),
		...(support === 'optional' || support === 'required' ? [`it says taskSupport: ${support}`] : []),
	];
}
