import { type Logger, pino } from 'pino';
import { paintFor, plain, safeJson } from './terminal.ts';

/** How a server reports. */
export interface LogOptions {
	/** One JSON object a line instead of words for people. */
	readonly json?: boolean;
	/** Errors only. */
	readonly quiet?: boolean;
}

/** A log on stderr: stdout belongs to the transport. */
export function createLog({ json = false, quiet = false }: LogOptions): Logger {
	const write = (text: string): void => void process.stderr.write(text);
	const destination = { write: json ? write : (line: string) => write(forPeople(line)) };
	return pino(
		{ level: quiet ? 'error' : 'info', base: null, timestamp: pino.stdTimeFunctions.isoTime },
		destination,
	);
}

/** The levels that a person should notice. */
const LABELS: Readonly<Record<number, readonly [label: string, colour: 'yellow' | 'red']>> = {
	40: ['warning', 'yellow'],
	50: ['error', 'red'],
	60: ['error', 'red'],
};

function forPeople(line: string): string {
	const { level, time, msg, ...facts } = JSON.parse(line) as Record<string, unknown>;
	const paint = paintFor(process.stderr);
	const label = LABELS[Number(level)];
	const details = Object.entries(facts).map(([name, value]) =>
		paint('dim', `${plain(name)}=${typeof value === 'string' ? plain(value) : safeJson(value, 0)}`),
	);
	const words = [
		paint('dim', new Date(String(time)).toTimeString().slice(0, 8)),
		...(label ? [paint(label[1], `${label[0]}:`)] : []),
		plain(String(msg)),
		...details,
	];
	return `${words.join(' ')}\n`;
}
