import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { Failure } from './failure.ts';
import { isUrl, type KeptTarget, serverNameOf, type ServerTarget, withoutSecrets } from './server-target.ts';
import { stateFolder } from './state-folder.ts';

/** The journal that a person's calls are in. */
export function defaultJournal(): string {
	return join(stateFolder(), 'calls.db');
}

const keptTarget = z.object({
	name: z.string(),
	isWhole: z.boolean(),
	target: z.discriminatedUnion('kind', [
		z.object({ kind: z.literal('http'), url: z.string() }),
		z.object({ kind: z.literal('stdio'), command: z.array(z.string()).min(1), cwd: z.string() }),
	]),
});

/**
 * How the servers of a journal are reached again: one file each, in a folder beside the journal that only its owner
 * can read. A file is replaced as a whole, so that several processes may use one book.
 */
export class ServerBook {
	readonly #folder: string;

	constructor(journal: string) {
		this.#folder = `${journal}.servers`;
	}

	/** Keeps a target, without its secrets; answers the name of its server. */
	keep(target: ServerTarget): string {
		const name = serverNameOf(target);
		const file = this.#fileOf(name);
		try {
			mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
			const fresh = `${file}.${randomUUID()}`;
			writeFileSync(fresh, JSON.stringify({ name, ...withoutSecrets(target) }), { mode: 0o600 });
			renameSync(fresh, file);
		} catch (error) {
			throw new Failure(`${this.#folder} cannot be written: ${messageOf(error)}`, { cause: error });
		}
		return name;
	}

	/** How a server is reached; undefined when nothing is known of it. */
	find(name: string): KeptTarget | undefined {
		const kept = this.#read(this.#fileOf(name));
		if (kept) return kept;
		return isUrl(name) ? { target: { kind: 'http', url: name }, isWhole: true } : undefined;
	}

	/** The names of all servers. */
	names(): readonly string[] {
		let files: readonly string[] = [];
		try {
			files = readdirSync(this.#folder).filter((file) => file.endsWith('.json'));
		} catch {
			// Nothing was kept yet.
		}
		return files.flatMap((file) => this.#read(join(this.#folder, file))?.name ?? []).sort();
	}

	#read(file: string): z.infer<typeof keptTarget> | undefined {
		try {
			return keptTarget.parse(JSON.parse(readFileSync(file, 'utf8')));
		} catch {
			return undefined;
		}
	}

	#fileOf(name: string): string {
		return join(this.#folder, `${createHash('sha256').update(name).digest('hex').slice(0, 32)}.json`);
	}
}
