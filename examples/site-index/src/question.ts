/** A question as asked, taken apart into what to look for. */

export interface Term {
	/** As the caller wrote it. */
	readonly written: string;
	/** The words of which it is made up: several when it is a name like `os.path.join`. */
	readonly words: readonly string[];
	readonly isName: boolean;
}

const stopWords = new Set(
	`a about above after again all also am an and any are as at be because been before being below between both but by
	can cannot could did do does doing done down during each few for from further get gets getting give had has have
	having here how i if in into is it its itself just let like make me more most my need no nor not now of off on once
	only or other our out over own please same should show so some such tell than that the their them then there these
	they this those through to too under until up us use used using very want was way we were what when where which
	while who whom why will with without would you your`
		.split(/\s+/u)
		.filter((word) => word !== ''),
);
const namePattern = /^[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|->|#|\/|-|_)[\p{L}\p{N}_$]+)+$/u;
const mostTerms = 24;

export const termsOf = (question: string): Term[] => {
	const all: Term[] = [];
	for (const piece of question.normalize('NFC').slice(0, 1_000).split(/\s+/u)) {
		const written = piece.replace(/^[^\p{L}\p{N}_$@]+|[^\p{L}\p{N}_$+#]+$/gu, '').replace(/\(.*$/u, '');
		const words = written.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu);
		if (words === null) continue;
		const isName = words.length > 1 && namePattern.test(written) && !written.includes('/');
		// Words that only happen to be joined by a mark ("client/server") are words of their own.
		if (isName || words.length === 1) all.push({ written, words, isName: isName || isCoined(written) });
		else for (const word of words) all.push({ written: word, words: [word], isName: false });
	}
	const kept = all.filter(({ words: [word = ''], isName }) => isName || !stopWords.has(word));
	const seen = new Set<string>();
	return (kept.length > 0 ? kept : all)
		.filter(({ words }) => !seen.has(words.join(' ')) && seen.add(words.join(' ')))
		.slice(0, mostTerms);
};

/** Names are spelled like nothing else in a sentence: `assertEqual`, `WAL`. */
const isCoined = (written: string): boolean => /\p{Ll}\p{Lu}/u.test(written) || /^\p{Lu}{3,}$/u.test(written);

/** A term as the search index is asked for it: words in a row, each in quotes. */
export const phraseOf = ({ words }: Term): string => `"${words.join(' ')}"`;
