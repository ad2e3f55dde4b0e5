import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { fileJournal } from '../client/journal/file-journal.ts';
import type { Journal } from '../client/journal/journal.ts';
import type { ElicitResult } from '../client/sdk.ts';
import { TaskClient } from '../client/task-client.ts';
import type { JsonObject } from '../protocol/json.ts';
import { CallControls } from './call-controls.ts';
import { CallScreen } from './call-screen.ts';
import { Person } from './person.ts';
import { Questioner, type QuestionPolicy } from './questioner.ts';
import { ServerBook, defaultJournal } from './server-book.ts';
import { newClient, ServerLink } from './server-link.ts';
import { onEndSignal } from './shutdown.ts';
import { describeTarget, type ServerTarget } from './server-target.ts';
import { plain } from './terminal.ts';

/** Options that every command has that calls or watches. */
export interface SessionOptions {
	readonly journal?: string;
	readonly json?: boolean;
	readonly quiet?: boolean;
	readonly verbose?: boolean;
	/** By name. */
	readonly header?: Readonly<Record<string, string>>;
	readonly token?: string;
	readonly requestTimeoutMs: number;
	readonly waitMs?: number;
	readonly onQuestion?: QuestionPolicy;
}

/** A server that is connected to, and the client of its tasks. */
export interface Connected {
	readonly link: ServerLink;
	readonly tasks: TaskClient;
}

/** As what, and how long, a server is connected to. */
export interface ConnectAs {
	/** By which the journal knows the server. */
	readonly name: string;
	/** Who asks, in words, when the server has a question that belongs to no task. */
	readonly asker: string;
	readonly signal: AbortSignal;
}

/** What the calls of one command share: the journal, the screen, the person, and what ends them. */
export class CallSession {
	readonly screen: CallScreen;
	readonly controls = new CallControls();
	readonly questioner: Questioner;
	readonly journal: Journal;
	readonly book: ServerBook;
	readonly #options: SessionOptions;
	readonly #person: Person | undefined;
	readonly #connected: Connected[] = [];
	readonly #forgetSignals: () => void;
	readonly #waiting = new AbortController();

	constructor(options: SessionOptions) {
		const file = options.journal ?? defaultJournal();
		this.#options = options;
		this.journal = fileJournal(file);
		this.book = new ServerBook(file);
		this.screen = new CallScreen(process.stderr, { isQuiet: options.quiet === true });
		this.#person = Person.isThere() ? new Person(this.screen, this.controls) : undefined;
		const policy = options.onQuestion ?? (this.#person ? 'ask' : 'leave');
		this.questioner = new Questioner(this.screen, this.controls, this.#person, policy);
		this.#forgetSignals = onEndSignal(() => this.controls.letGo('asked'));
		this.#person?.greet();
	}

	/** Begins to count `--wait-ms`. */
	startWaiting(): void {
		const { waitMs } = this.#options;
		if (waitMs === undefined) return;
		const { signal } = this.#waiting;
		wait(waitMs, undefined, { signal }).then(
			() => this.controls.letGo('waited'),
			() => {},
		);
	}

	/**
	 * Connects to a server, until `signal` fires.
	 *
	 * @throws Failure with the exit code for a server that could not be reached.
	 */
	async connect(target: ServerTarget, { name, asker, signal }: ConnectAs): Promise<Connected> {
		const { header = {}, token, requestTimeoutMs, verbose = false } = this.#options;
		const { screen, questioner } = this;
		const link = new ServerLink(target, {
			headers: { ...header, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
			requestTimeoutMs,
			onServerLog: (line) => {
				if (verbose) screen.say(screen.paint('dim', `server: ${plain(line)}`));
			},
			onRestart: () => screen.say(`${plain(describeTarget(target))} has ended; starting it again`),
		});
		const server = describeTarget(target);
		// For calls that ask before they are tasks, or never become one.
		link.client.setRequestHandler('elicitation/create', async ({ method, params }, { mcpReq }) => {
			const question = { method, params: params as unknown as JsonObject };
			const origin = { server, tool: asker, key: undefined, signal: mcpReq.signal };
			return (await questioner.answer(question, origin)) as unknown as ElicitResult;
		});
		await link.connect(signal);
		const tasks = new TaskClient(link.client, {
			...{ journal: this.journal, server: name, rpcTimeoutMs: requestTimeoutMs },
			onInput: (request, { key, tool, signal }) => questioner.answer(request, { server, tool, key, signal }),
			onProblem: (error) => {
				if (verbose) screen.say(screen.paint('dim', plain(messageOf(error))));
			},
		});
		const connected = { link, tasks };
		this.#connected.push(connected);
		return connected;
	}

	/** A client of tasks whose outcomes the journal has already: there is no need to reach the server. */
	offline(name: string): TaskClient {
		return new TaskClient(newClient(), { journal: this.journal, server: name });
	}

	/** Ends connections, and gives back the terminal. */
	async close(): Promise<void> {
		if (this.controls.leaving.aborted && this.#connected.some(({ link }) => link.isCommand))
			this.screen.say('The server ends with this command; resume starts it again.');
		this.#waiting.abort();
		this.controls.end();
		this.#forgetSignals();
		this.#person?.dismiss();
		this.screen.close();
		for (const { tasks } of this.#connected) tasks.close();
		await Promise.all(this.#connected.map(({ link }) => link.close()));
		await this.journal.close();
	}
}
