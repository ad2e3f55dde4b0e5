/** What is read out of one page. */

export interface Section {
	/** 1 to 6 for headings, 7 for a defined term (a `dt` with an anchor), 0 for what comes before any heading. */
	readonly level: number;
	readonly heading: string;
	/** The headings above this one, outermost first. */
	readonly above: readonly string[];
	readonly anchor: string | undefined;
	readonly text: string;
	/** How much of the text stands in links, 0 to 1: a section that is all links is a list of other pages. */
	readonly linkShare: number;
}

export interface Page {
	readonly title: string;
	readonly canonical: string | undefined;
	/** As written, not yet resolved; without those that only lead to a place in the page itself. */
	readonly links: readonly string[];
	readonly base: string | undefined;
	readonly noIndex: boolean;
	/** Whether the page says itself where its main part is. */
	readonly hasMain: boolean;
	readonly sections: readonly Section[];
}
