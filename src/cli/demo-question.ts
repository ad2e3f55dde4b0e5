import { createInterface } from 'node:readline/promises';
import type { DemoScreen } from './demo-screen.ts';

const PATIENCE_MS = 10_000;

/** Asks the person at the terminal a yes-or-no question. Yes where nobody is there or nobody answers in time. */
export async function askYesOrNo(
	screen: DemoScreen,
	question: string,
	signal: AbortSignal,
): Promise<boolean> {
	const { stdin, stdout, env } = process;
	if (!stdin.isTTY || !stdout.isTTY || (env['CI'] ?? '') !== '') {
		screen.say(`${question} ${screen.paint('bold', 'yes')} (nobody can type here: answering yes for you)`);
		return true;
	}
	const terminal = createInterface({ input: stdin, output: stdout });
	// A terminal that is read line by line keeps Ctrl-C to itself.
	terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
	try {
		const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
		const typed = await terminal.question(
			`         ${question} [Y/n] (yes after ${PATIENCE_MS / 1_000} s) `,
			{
				signal: patience,
			},
		);
		return !/^\s*n/i.test(typed);
	} catch (error) {
		signal.throwIfAborted();
		if (!(error instanceof Error && error.name === 'AbortError')) throw error;
		screen.line();
		screen.say('no answer: answering yes for you');
		return true;
	} finally {
		terminal.close();
	}
}
