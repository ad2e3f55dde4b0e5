import type { JsonObject } from '../protocol/json.ts';
import { type EndedCall, endedCallJson, endedCallText, endingWords, exitCodeAfter } from './call-ending.ts';
import type { CallScreen } from './call-screen.ts';
import { EXIT_CODES } from './failure.ts';
import { plain, safeJson } from './terminal.ts';

/** Tells how calls ended; answers the exit code. Resolves when everything was written. */
export class CallReport {
	readonly #screen: CallScreen;
	readonly #isJson: boolean;

	constructor(screen: CallScreen, isJson: boolean) {
		this.#screen = screen;
		this.#isJson = isJson;
	}

	/** The only call of a command. */
	async one(call: EndedCall): Promise<number> {
		if (this.#isJson) await this.#json(endedCallJson(call));
		else await this.#text(call, false);
		return exitCodeAfter(call.ending);
	}

	/** One of several calls, as soon as it has ended. */
	async each(call: EndedCall): Promise<void> {
		if (!this.#isJson) await this.#text(call, true);
	}

	/** All of several calls. */
	async all(calls: readonly EndedCall[]): Promise<number> {
		if (this.#isJson) await this.#json({ calls: calls.map(endedCallJson) });
		return Math.max(EXIT_CODES.ok, ...calls.map(({ ending }) => exitCodeAfter(ending)));
	}

	async #text(call: EndedCall, isOneOfMany: boolean): Promise<void> {
		const { status } = call.ending;
		const words = endingWords(call);
		const text = endedCallText(call);
		if (isOneOfMany && text !== '') await write(`== ${plain(call.tool)} ${plain(call.taskId ?? '')}\n`);
		await write(text);
		if (words === '') return;
		// An error is said also where nothing else is.
		if (status === 'detached' || status === 'cancelled') this.#screen.say(words);
		else process.stderr.write(`${words}\n`);
	}

	#json(document: JsonObject): Promise<void> {
		return write(`${safeJson(document)}\n`);
	}
}

/** Resolves when stdout has taken the text: the process may exit right afterwards. */
function write(text: string): Promise<void> {
	if (text === '') return Promise.resolve();
	return new Promise((resolve, reject) =>
		process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
	);
}
