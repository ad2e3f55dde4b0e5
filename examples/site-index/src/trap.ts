/**
 * Crawler traps: parts of a site that make up new addresses for ever. An address alone often cannot tell, so
 * addresses are counted by shape (their digits and query values blanked) and a shape may only grow so far.
 */

const yearAndMonth =
	/(?<![\d])(?<year>(?:1[0-9]|2[0-9]|3[0-9])\d\d)[-/=&_.]?(?:month=|m=)?(?<month>0?[1-9]|1[0-2])(?![\d])/u;
const calendarWord = /\b(calendar|events?|schedule|agenda|kalender|archive)\b/iu;
const longestPath = 24;

export interface TrapLimits {
	/** Addresses of one path that differ only in their query string. */
	readonly queryVariants: number;
	/** Addresses that differ only in a date. */
	readonly dates: number;
}

export const usualTrapLimits: TrapLimits = { queryVariants: 500, dates: 120 };

export class TrapWatch {
	readonly #limits: TrapLimits;
	readonly #thisYear: number;
	readonly #shapes = new Map<string, number>();

	constructor(thisYear: number, limits: TrapLimits = usualTrapLimits) {
		this.#thisYear = thisYear;
		this.#limits = limits;
	}

	/** Why an address is taken for a trap; nothing when it is not, and then it is counted. */
	refuse(address: string): string | undefined {
		const { pathname, search } = new URL(address);
		const segments = pathname.split('/').filter((segment) => segment !== '');
		if (segments.length > longestPath || repeats(segments)) return 'a path that repeats itself';
		const parameters = search === '' ? [] : search.slice(1).split('&');
		if (repeatsParameter(parameters)) return 'a query string that repeats itself';

		const date = yearAndMonth.exec(pathname + search)?.groups;
		if (
			date !== undefined &&
			(search !== '' || calendarWord.test(pathname) || /\d\/\d[\d/]*$/u.test(pathname))
		) {
			const year = Number(date['year']);
			if (year < 1970 || year > this.#thisYear + 3) return 'a calendar without end';
			const shape = `d ${blank(pathname)} ${parameterNames(parameters)}`;
			if (!this.#countUpTo(shape, this.#limits.dates)) return 'a calendar without end';
			return undefined;
		}
		if (parameters.length > 0 && !this.#countUpTo(`q ${pathname}`, this.#limits.queryVariants))
			return 'query strings without end';
		return undefined;
	}

	#countUpTo(shape: string, limit: number): boolean {
		const count = (this.#shapes.get(shape) ?? 0) + 1;
		if (count > limit) return false;
		this.#shapes.set(shape, count);
		return true;
	}
}

const blank = (path: string): string => path.replace(/\d+/gu, '0');

const parameterNames = (parameters: readonly string[]): string =>
	parameters
		.map((pair) => pair.split('=', 1)[0] ?? '')
		.sort()
		.join('&');

/** Whether a run of one to four segments comes three times in a row, as relative links to oneself make it. */
const repeats = (segments: readonly string[]): boolean => {
	for (let size = 1; size <= 4; size += 1)
		for (let start = 0; start + size * 3 <= segments.length; start += 1) {
			let same = true;
			for (let at = start; same && at < start + size * 2; at += 1)
				same = segments[at] === segments[at + size];
			// A number may well come thrice in a row (/0/0/0/): it is not what a loop of links looks like.
			if (same && segments.slice(start, start + size).some((segment) => /\D/u.test(segment))) return true;
		}
	return false;
};

const repeatsParameter = (parameters: readonly string[]): boolean =>
	parameters.length > 3 && new Set(parameters).size <= parameters.length / 3;
