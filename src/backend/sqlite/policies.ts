import type { TaskPolicy } from '../record.ts';
import type { Database } from './database.ts';

const FIND = 'SELECT id FROM policies WHERE value = ?';
const INSERT = 'INSERT INTO policies (value) VALUES (?) ON CONFLICT DO NOTHING';
const GET = 'SELECT value FROM policies WHERE id = ?';

/** How many policies are remembered; a server has about as many as it has tools. */
const REMEMBERED = 1_000;

/** Every task has a policy, but there are only a few different ones: each is stored and parsed once. */
export class Policies {
	readonly #database: Database;
	readonly #byId = new Map<number, TaskPolicy>();
	readonly #byText = new Map<string, number>();
	/** Only frozen policies, such as all that come out of here: one still is what it was. */
	readonly #ids = new WeakMap<TaskPolicy, number>();

	constructor(database: Database) {
		this.#database = database;
	}

	/** The id of a policy, which is stored if it is new. Not to be called within a transaction. */
	idOf(policy: TaskPolicy): number {
		const known = this.#ids.get(policy);
		if (known !== undefined) return known;
		const text = JSON.stringify(policy);
		const id = this.#byText.get(text) ?? this.#store(text);
		if (Object.isFrozen(policy) && Object.isFrozen(policy.retry)) this.#ids.set(policy, id);
		return id;
	}

	/** The policy with an id. */
	get(id: number): TaskPolicy {
		return (
			this.#byId.get(id) ??
			this.#remember(id, this.#database.statement<{ value: string }>(GET).get(id)?.value)
		);
	}

	#store(text: string): number {
		// In a transaction of its own: one that is rolled back must not leave an id behind in memory.
		// The full durability of the create that follows covers it.
		const id = this.#database.write('normal', () => {
			this.#database.statement(INSERT).run(text);
			return this.#database.statement<{ id: number }>(FIND).get(text)?.id;
		});
		if (id !== undefined) this.#remember(id, text);
		return id ?? 0;
	}

	#remember(id: number, text: string | undefined): TaskPolicy {
		if (text === undefined) throw new Error(`policy ${id} is missing`);
		const value = JSON.parse(text) as TaskPolicy;
		const policy: TaskPolicy = Object.freeze({ ...value, retry: Object.freeze(value.retry) });
		if (this.#byId.size >= REMEMBERED) {
			this.#byId.clear();
			this.#byText.clear();
		}
		this.#byId.set(id, policy);
		this.#byText.set(text, id);
		this.#ids.set(policy, id);
		return policy;
	}
}
