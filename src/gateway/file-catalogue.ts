import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { JsonObject } from '../protocol/json.ts';
import type { CatalogueStore } from './catalogue.ts';
import type { UpstreamLists } from './upstream-lists.ts';
import type { UpstreamOptions } from './upstream-options.ts';

const ENTRIES = z.array(z.custom<JsonObject>((entry) => typeof entry === 'object' && entry !== null));

const LISTS = z.object({
	tools: ENTRIES,
	prompts: ENTRIES,
	resources: ENTRIES,
	resourceTemplates: ENTRIES,
	capabilities: z.custom<JsonObject>((value) => typeof value === 'object' && value !== null),
	instructions: z.string().nullable(),
});

/**
 * Keeps the lists of each upstream in a file of its own below `folder`. The name of the file changes with where the
 * upstream is found, so that a changed configuration is not answered for from an old list.
 */
export function fileCatalogue(folder: string, upstreams: readonly UpstreamOptions[]): CatalogueStore {
	const files = new Map(
		upstreams.map(({ name, target }) => {
			const place = target.kind === 'command' ? [target.command, target.args, target.cwd] : [target.url];
			const digest = createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 16);
			return [name, join(folder, `${name}-${digest}.json`)];
		}),
	);
	return {
		async read(upstream) {
			const file = files.get(upstream);
			if (file === undefined) return undefined;
			const text = await readFile(file, 'utf8').catch(() => undefined);
			if (text === undefined) return undefined;
			// A file that is broken is as good as none: the upstream is asked.
			const parsed = LISTS.safeParse(JSON.parse(text));
			return parsed.success ? parsed.data : undefined;
		},
		async write(upstream, lists: UpstreamLists) {
			const file = files.get(upstream);
			if (file === undefined) return;
			await mkdir(folder, { recursive: true, mode: 0o700 });
			const draft = `${file}.${process.pid}.tmp`;
			await writeFile(draft, JSON.stringify(lists), { mode: 0o600 });
			await rename(draft, file);
		},
	};
}
