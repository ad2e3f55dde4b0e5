/** Real documentation sites, from Debian's packages. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const shelf = '/usr/share/doc';

/** The newest edition there is; where there is none, the place of one. */
const newestPostgres = (): string => {
	const names = existsSync(shelf) ? readdirSync(shelf) : [];
	const editions = names.flatMap((name) => /^postgresql-doc-(\d+)$/u.exec(name)?.[1] ?? []).map(Number);
	return join(shelf, `postgresql-doc-${Math.max(15, ...editions)}`, 'html');
};

export const pythonDocs = join(shelf, 'python3-doc/html');
export const postgresDocs = newestPostgres();

/** Why a test on the real documentations cannot run here; where they must be there, nothing excuses it. */
export const withoutDocs = (): string | undefined => {
	const missing = [pythonDocs, postgresDocs].filter((folder) => !existsSync(join(folder, 'index.html')));
	if (missing.length === 0) return undefined;
	const reason = `not installed: ${missing.join(', ')} (apt-get install python3-doc postgresql-doc)`;
	if (process.env['CI'] === 'true') throw new Error(reason);
	console.warn(`Skipped, ${reason}`);
	return reason;
};
