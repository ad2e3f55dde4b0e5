/** All that only reads the index file: answers and lists. */
import { Asker, type Answered, type Question } from './asker.ts';
import { Catalogue, type SiteEntry, type SiteReport } from './catalogue.ts';
import type { CrawlOptions } from './options.ts';

export class IndexReader {
	readonly #asker: Asker;
	readonly #catalogue: Catalogue;

	constructor(file: string) {
		this.#asker = new Asker(file);
		this.#catalogue = new Catalogue(file);
	}

	ask(question: Question): Answered {
		return this.#asker.ask(question);
	}

	sites(owner: string): SiteEntry[] {
		return this.#catalogue.sites(owner);
	}

	options(owner: string, siteId: number): CrawlOptions | undefined {
		return this.#catalogue.options(owner, siteId);
	}

	report(owner: string, siteId: number): SiteReport | undefined {
		return this.#catalogue.report(owner, siteId);
	}
}
