/** Words near a word that is nowhere in the index. */

/** Edits from one word to another, swapped neighbours counted as one; more than the limit is told as limit + 1. */
export const distance = (from: string, to: string, limit: number): number => {
	if (Math.abs(from.length - to.length) > limit) return limit + 1;
	let beforeLast: number[] = [];
	let last = Array.from({ length: to.length + 1 }, (_, at) => at);
	for (let row = 1; row <= from.length; row += 1) {
		const current = [row];
		let least = row;
		for (let column = 1; column <= to.length; column += 1) {
			const same = from[row - 1] === to[column - 1];
			let cost = Math.min(
				(last[column] ?? 0) + 1,
				(current[column - 1] ?? 0) + 1,
				(last[column - 1] ?? 0) + (same ? 0 : 1),
			);
			if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
				cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
			current.push(cost);
			least = Math.min(least, cost);
		}
		if (least > limit) return limit + 1;
		beforeLast = last;
		last = current;
	}
	return last[to.length] ?? limit + 1;
};

export interface Candidate {
	readonly term: string;
	readonly passages: number;
}

/** The term nearest to any of some spellings; of those equally near, the one found most often. */
export const nearest = (
	spellings: readonly string[],
	candidates: Iterable<Candidate>,
): Candidate | undefined => {
	let best: Candidate | undefined;
	let bestDistance = Infinity;
	for (const candidate of candidates) {
		const found = Math.min(...spellings.map((spelling) => allowed(spelling, candidate.term)));
		if (found === Infinity || found > bestDistance) continue;
		if (found < bestDistance || candidate.passages > (best?.passages ?? 0)) {
			best = candidate;
			bestDistance = found;
		}
	}
	return best;
};

/** The distance, as far as it may be a slip of the pen: in a short word two edits make any other. */
const allowed = (from: string, to: string): number => {
	const limit = from.length < 5 ? 1 : 2;
	const found = distance(from, to, limit);
	return found > limit ? Infinity : found;
};
