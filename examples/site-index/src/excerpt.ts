/** The part of a passage around the words that were asked for. */

const longestExcerpt = 700;

export const excerpt = (text: string, words: readonly string[]): string => {
	if (text.length <= longestExcerpt) return text;
	const lower = text.toLowerCase();
	let best = 0;
	let bestCount = -1;
	for (let start = 0; start < text.length; start += longestExcerpt / 4) {
		const window = lower.slice(start, start + longestExcerpt);
		// A section mostly says at its beginning what it is about.
		const count = words.filter((word) => window.includes(word)).length + (start === 0 ? 1 : 0);
		if (count > bestCount) [best, bestCount] = [start, count];
	}
	const start = best === 0 ? 0 : text.indexOf(' ', best) + 1;
	const end =
		start + longestExcerpt >= text.length ? text.length : text.lastIndexOf(' ', start + longestExcerpt);
	return `${start === 0 ? '' : '… '}${text.slice(start, end > start ? end : start + longestExcerpt)}${end < text.length ? ' …' : ''}`;
};
