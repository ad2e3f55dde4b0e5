import { MAX_TIMER_MS } from '../client/clock.ts';
import type { Execution } from '../client/execution.ts';
import type { Tool } from '../client/sdk.ts';
import type { JsonObject } from '../protocol/json.ts';
import { convertArguments, type NamedArgument, readJsonArguments } from './call-arguments.ts';
import { type CallEnding, type EndedCall, failedEnding } from './call-ending.ts';
import { CallSession, type Connected, type SessionOptions } from './call-session.ts';
import { EXIT_CODES, Failure, UsageError } from './failure.ts';
import { follow } from './follow.ts';
import { CallLine } from './call-line.ts';
import { progressOf } from './progress-bar.ts';
import { CallReport } from './report.ts';
import { ServerLink } from './server-link.ts';
import { describeTarget, serverNameOf, type ServerTarget } from './server-target.ts';

/** Options of `holdfast call`. */
export interface CallOptions extends SessionOptions {
	readonly arg?: readonly NamedArgument[];
	readonly jsonArgs?: string;
	readonly detach?: boolean;
}

/** Calls a tool, and watches it to its end. */
export async function call(target: ServerTarget, tool: string, options: CallOptions): Promise<number> {
	if (options.arg && options.jsonArgs !== undefined)
		throw new UsageError('Give either --arg or --json-args, not both.');
	const given = options.jsonArgs === undefined ? undefined : await readJsonArguments(options.jsonArgs);
	const session = new CallSession(options);
	try {
		const { ended, execution } = await begin(session, target, tool, options, given);
		const exitCode = await new CallReport(session.screen, options.json === true).one(ended);
		if (ended.ending.status !== 'detached') await execution?.acknowledge();
		return exitCode;
	} finally {
		await session.close();
	}
}

async function begin(
	session: CallSession,
	target: ServerTarget,
	tool: string,
	options: CallOptions,
	given: JsonObject | undefined,
): Promise<{ readonly ended: EndedCall; readonly execution: Execution | undefined }> {
	const startedAtMs = Date.now();
	const server = describeTarget(target);
	const end = (ending: CallEnding): { ended: EndedCall; execution: undefined } => ({
		ended: { tool, server, taskId: null, reference: null, elapsedMs: Date.now() - startedAtMs, ending },
		execution: undefined,
	});
	const { screen, controls } = session;
	const line = new CallLine(screen, tool, startedAtMs);
	const endPlainCall = controls.beginPlainCall();
	try {
		session.startWaiting();
		if (screen.isLive) line.show({ fraction: undefined, message: 'connecting', left: undefined });
		const signal = AbortSignal.any([controls.cancelling, controls.leaving]);
		const connected = await session.connect(target, { name: serverNameOf(target), asker: tool, signal });
		const definition = await findTool(connected, tool, server);
		const args = given ?? convertArguments(options.arg ?? [], definition?.inputSchema);
		// Before there can be a task: the journal alone does not say how its server is reached.
		session.book.keep(target);
		if (screen.isLive) line.show({ fraction: undefined, message: 'calling', left: undefined });
		const started = await start(connected, { name: tool, arguments: args }, definition, line, signal);
		if (!('execution' in started)) return end(started.ending);
		const { execution } = started;
		endPlainCall();
		line.end();
		if (execution.reference !== null && options.detach === true) controls.leave('detached');
		return { ended: await follow(session, execution, server), execution };
	} catch (error) {
		if (!(error instanceof Failure) || error.exitCode !== EXIT_CODES.unreachable) throw error;
		return end(
			controls.cancelling.aborted || controls.leaving.aborted
				? STOPPED_EARLY
				: { status: 'unreachable', message: error.message },
		);
	} finally {
		endPlainCall();
		line.end();
	}
}

const STOPPED_EARLY: CallEnding = {
	status: 'cancelled',
	message: 'it was stopped before the server had answered',
};

/** What the server says of a tool; undefined where it lists none. @throws UsageError */
async function findTool({ link }: Connected, name: string, server: string): Promise<Tool | undefined> {
	let tools: readonly Tool[];
	try {
		({ tools } = await link.client.listTools());
	} catch (error) {
		if (ServerLink.isOutage(error)) throw link.unreachable(error);
		return undefined;
	}
	const found = tools.find((tool) => tool.name === name);
	if (found || tools.length === 0) return found;
	const names = tools.map((tool) => tool.name).join(', ');
	throw new UsageError(`${server} has no tool "${name}". It has: ${names}.`);
}

/** Sends the call; what comes back is an execution, or how the call ended without one. */
async function start(
	{ link, tasks }: Connected,
	params: { readonly name: string; readonly arguments: JsonObject },
	definition: Tool | undefined,
	line: CallLine,
	signal: AbortSignal,
): Promise<{ readonly execution: Execution } | { readonly ending: CallEnding }> {
	try {
		const execution = await tasks.startTool(params, {
			signal,
			// A server without Tasks holds the call for as long as it takes.
			timeout: MAX_TIMER_MS,
			onprogress: (progress) => line.show(progressOf(progress, line.elapsedMs)),
			...(definition && { toolDefinition: definition }),
		});
		return { execution };
	} catch (error) {
		if (signal.aborted) return { ending: STOPPED_EARLY };
		if (!ServerLink.isOutage(error)) return { ending: failedEnding(error) };
		const { message } = link.unreachable(error);
		const advice = 'Whether the call began is not known; check before calling again.';
		return { ending: { status: 'unreachable', message: `${message}\n${advice}` } };
	}
}
