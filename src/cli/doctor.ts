import { inspectServer } from '../gateway/doctor/inspection.ts';
import { reportOf, type ServerReport, type ToolReport } from '../gateway/doctor/report.ts';
import { proposalText } from '../gateway/folding/propose.ts';
import type { UpstreamTarget } from '../gateway/upstream-options.ts';
import { isHoldfastError } from '../errors.ts';
import { EXIT_CODES, Failure } from './failure.ts';
import type { ServerTarget } from './server-target.ts';
import { type Paint, paintFor, plain, safeJson, table, widthOf } from './terminal.ts';

/** Options of `holdfast doctor`. */
export interface DoctorOptions {
	readonly json?: boolean;
	/** Sent with every request to a server over HTTP. */
	readonly header?: Readonly<Record<string, string>>;
	readonly transport: 'http' | 'sse';
	/** How long the server may take to answer, in milliseconds. */
	readonly limitMs: number;
}

/** Connects to a server once and says what it supports, and which of its tools belong together. */
export async function doctor(server: ServerTarget, options: DoctorOptions): Promise<number> {
	const report = reportOf(
		await inspectServer(upstreamTarget(server, options), options.limitMs).catch((error: unknown) => {
			throw isHoldfastError(error, 'UPSTREAM_UNAVAILABLE')
				? new Failure(error.message, { cause: error })
				: error;
		}),
	);
	const { stdout } = process;
	stdout.write(
		options.json === true
			? `${safeJson(asJson(report))}\n`
			: asText(report, paintFor(stdout), widthOf(stdout)),
	);
	return EXIT_CODES.ok;
}

function upstreamTarget(target: ServerTarget, { transport, header }: DoctorOptions): UpstreamTarget {
	if (target.kind === 'http') return { kind: transport, url: target.url, headers: header ?? {} };
	const [command = '', ...args] = target.command;
	const env = Object.entries(process.env).filter(
		(entry): entry is [string, string] => entry[1] !== undefined,
	);
	return { kind: 'command', command, args, env: Object.fromEntries(env), cwd: target.cwd };
}

function asJson(report: ServerReport): unknown {
	const { proposals, ...rest } = report;
	return { ...rest, proposals, foldYaml: proposals.length === 0 ? null : proposalText(proposals) };
}

function asText(report: ServerReport, paint: Paint, width: number): string {
	const { name, version, protocolVersion, handshakeMs, start, capabilities, counts, tools, proposals } =
		report;
	const rows = [
		['Server', `${name} ${version}`],
		['Revision', protocolVersion],
		['Tasks', TASK_WORDS[report.tasks]],
		['Capabilities', capabilities.join(', ') || 'none'],
		['Offers', `${counts.tools} tools, ${counts.prompts} prompts, ${counts.resources} resources`],
		['Handshake', `${handshakeMs} ms`],
	];
	const verdicts = start.map(
		({ limitMs, beyond, isMet }) =>
			`  ${isMet ? paint('green', 'within') : paint('red', 'beyond')} ${limitMs / 1_000} s${isMet ? '' : `: ${beyond}`}`,
	);
	return [
		table(rows, width).trimEnd(),
		...verdicts,
		...(tools.length === 0 ? [] : ['', paint('bold', 'Tools'), table(tools.map(rowOf), width).trimEnd()]),
		'',
		...(proposals.length === 0
			? ['No tools look like a family of start, check and cancel.']
			: [
					paint('bold', 'Tools that look like one long call'),
					'Nothing is folded by itself. Check this against what the tools answer, then put it under the upstream:',
					'',
					plain(proposalText(proposals), '\n').trimEnd(),
				]),
		'',
	].join('\n');
}

const TASK_WORDS: Readonly<Record<ServerReport['tasks'], string>> = {
	extension: 'the Tasks extension of 2026-07-28',
	'2025-11-25': 'those of 2025-11-25, which were experimental',
	none: 'none: long calls are adopted by the gateway',
};

const HINTS: readonly (readonly [hint: string, word: string])[] = [
	['readOnlyHint', 'read-only'],
	['idempotentHint', 'idempotent'],
	['destructiveHint', 'destructive'],
];

function rowOf({ name, hints, mayTakeLong }: ToolReport): readonly string[] {
	const words = HINTS.filter(([hint]) => hints[hint] === true).map(([, word]) => word);
	return [
		`  ${name}`,
		words.join(', ') || 'no hints',
		mayTakeLong.length === 0 ? '' : `may take long: ${mayTakeLong.join('; ')}`,
	];
}
